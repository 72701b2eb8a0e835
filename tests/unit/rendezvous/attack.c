/* attack.c - see attack.h. */
#include "attack.h"

#include <string.h>

enum attack_kind { SILENT, REPLAYS, REFLECTS, OTHER_KEY, ZEROS, EARLY, ATTACK_KINDS };

static const struct jobkey guess = {.has = true, .bytes = "a guess"};

void attack_sniff(struct world *w, const struct message *m)
{
    struct world_attack *a = &w->attack;

    if (m->type == MESSAGE_HELLO)
        a->hello = *m;
    else if (m->type == MESSAGE_CHALLENGE)
        a->challenge = *m;
    else if (m->type == MESSAGE_ANSWER)
        a->answer = *m;
}

static void say(struct world *w, struct leader *l, int link, const struct message *m)
{
    const int64_t now_ms = world_now(w, &w->launchers[w->attack.host]);

    if (!m->type || leader_heard(l, link, m, now_ms))
        return;
    leader_closed(l, link, LINK_CLOSED, now_ms);
    w->attack.links[link].open = false;
}

static void greet(struct world *w, struct leader *l, int link)
{
    struct message hello = w->attack.hello;

    if (!hello.type)
        hello = (struct message){.type = MESSAGE_HELLO,
                                 .hello = {.version = MESSAGE_VERSION, .number = 1, .run_id = "run"}};
    hello.hello.auth = w->attack.links[link].kind != ZEROS || world_draw(w, 2);
    if (world_draw(w, 2))
        hello.hello.number = 1 + (uint32_t)world_draw(w, 1000);
    if (world_draw(w, 2))
        hello.hello.id[0] ^= (uint8_t)(1 + world_draw(w, 255));
    w->attack.links[link].said = hello.hello;
    say(w, l, link, &hello);
}

static void answer(struct world *w, struct leader *l, int link)
{
    struct world_attack_link *x = &w->attack.links[link];
    struct message m = {.type = MESSAGE_ANSWER};

    x->owes = false;
    if (x->kind == REPLAYS)
        m = w->attack.answer;
    else if (x->kind == REFLECTS)
        memcpy(m.answer, x->heard.answer, sizeof(m.answer));
    else if (x->kind == OTHER_KEY)
        message_prove(&guess, MESSAGE_ANSWER, &x->said, &x->heard, m.answer);
    else if (x->kind == EARLY)
        m = (struct message){.type = MESSAGE_NODE,
                             .node = {.phase = NODE_FAILED, .beat = 1000, .nproc = 1, .cause.rank = -1}};
    say(w, l, link, &m);
}

void attack_leader(struct world *w, int who)
{
    struct world_attack *a = &w->attack;
    struct leader *l = &w->launchers[who].leader;
    int open = 0;

    if (!a->most)
        return;
    if (a->host != who)
        memset(a->links, 0, sizeof(a->links));
    a->host = who;
    for (int i = 0; i < WORLD_ATTACK_LINKS; i++) {
        open += a->links[i].open;
        if (a->links[i].open && a->links[i].owes)
            answer(w, l, i);
    }
    for (uint64_t n = world_draw(w, 4); n && open < a->most; n--, open++) {
        if (open >= WORLD_STRANGERS) /* service.h has them wait */
            return;
        const int link = leader_opened(l, false, world_now(w, &w->launchers[who]));
        if (link >= WORLD_ATTACK_LINKS) {
            w->wrong = "too many connections of the attacker";
            return;
        }
        a->links[link] = (struct world_attack_link){.open = true, .kind = (int)world_draw(w, ATTACK_KINDS)};
        if (a->links[link].kind != SILENT)
            greet(w, l, link);
    }
}

bool attack_hear(struct world *w, int who, const struct leader_action *b)
{
    struct world_attack *a = &w->attack;

    if (!a->most || a->host != who || b->link >= WORLD_ATTACK_LINKS || !a->links[b->link].open)
        return false;
    struct world_attack_link *x = &a->links[b->link];
    if (b->kind == LEADER_CLOSE)
        x->open = false;
    else if (b->message.type == MESSAGE_CHALLENGE) {
        x->heard = b->message.challenge;
        x->owes = true;
    } else if (b->message.type != MESSAGE_REFUSED)
        w->wrong = "an attacker is welcomed";
    return true;
}

bool attack_takes(struct world *w, int who)
{
    return w->attack.at_endpoint && w->launchers[who].key != KEY_NONE && world_draw(w, 4) == 0;
}

bool attack_reply(struct world *w, const struct message *m, struct message *reply)
{
    const struct world_attack *a = &w->attack;
    struct message_challenge *c = &reply->challenge;

    *reply = (struct message){.type = MESSAGE_CHALLENGE, .challenge = {.auth = 1}};
    if (m->type == MESSAGE_ANSWER)
        w->wrong = "a node answers an attacker";
    if (m->type != MESSAGE_HELLO)
        return false;
    switch (world_draw(w, ATTACK_KINDS)) {
    case SILENT:
        return false;
    case REPLAYS: /* the leader's own CHALLENGE of another connection */
        *reply = a->challenge;
        return a->challenge.type != 0;
    case REFLECTS: /* a node's proof as the leader's */
        *c = a->challenge.challenge;
        memcpy(c->answer, a->answer.answer, sizeof(c->answer));
        return true;
    case OTHER_KEY:
        c->leader[0] = 1;
        message_prove(&guess, MESSAGE_CHALLENGE, &m->hello, c, c->answer);
        return true;
    case ZEROS:
        c->auth = (uint8_t)world_draw(w, 2);
        return true;
    default: /* EARLY: a message that only the leader may send */
        *reply = (struct message){.type = MESSAGE_REFUSED, .refusal = 1 + (int64_t)world_draw(w, 4)};
        return true;
    }
}
