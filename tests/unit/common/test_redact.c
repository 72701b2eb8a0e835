/* test_redact.c - which secrets are hidden, in which surroundings, and what looks like one and stays. */
#include "common/redact.h"

#include "common/cleanup.h"
#include "common/random.h"
#include "seed.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEX40 "0123456789abcdef0123456789abcdef01234567"
#define HF "hf_AbCdEfGhIjKlMnOpQrStUvWx123456"

static const char *const HIDDEN[][2] = {
    {"GET https://user:pa55@host/x failed", "GET https://***@host/x failed"},
    {"cloning https://ghp_abc@github.com/o/r.git", "cloning https://***@github.com/o/r.git"},
    {"postgres://u:p@a@db:5432/x", "postgres://***@db:5432/x"},
    {"token=abcdef123", "token=***"},
    {"HF_TOKEN=abcdefghijkl", "HF_TOKEN=***"},
    {"?access_token=abcdefgh&x=1", "?access_token=***"},
    {"os.environ['WANDB_API_KEY'] = '" HEX40 "'", "os.environ['WANDB_API_KEY'] = '***'"},
    {"os.environ['API_KEY'] = 'abcdefghijkl1'", "os.environ['API_KEY'] = '***'"},
    {"cfg[\"auth\"][\"hf_token\"]=\"abcdefghijkl\"", "cfg[\"auth\"][\"hf_token\"]=\"***\""},
    {"{\"message\":\"d[\\\"password\\\"] = \\\"x\\\"\\nE\"}",
     "{\"message\":\"d[\\\"password\\\"] = \\\"*\\\"\\nE\"}"},
    {"declare -A c; c['API_KEY']=abcdefghijklm123", "declare -A c; c['API_KEY']=***"},
    {"api_key='sk1234567890'", "api_key='***'"},
    {"{\"key\": \"abcdefgh12345678\"}", "{\"key\": \"***\"}"},
    {"{\"password\":\"x y\",\"n\":1}", "{\"password\":\"***\",\"n\":1}"},
    {"{\"message\":\"\\\"password\\\": \\\"x1\\\" and\\nhf_abcdefghijklmnop1234\"}",
     "{\"message\":\"\\\"password\\\": \\\"**\\\" and\\nhf_***\"}"},
    {"{\"message\":\"password=abc\\nTraceback\"}", "{\"message\":\"password=***\\nTraceback\"}"},
    {"Password: hunter2 is wrong", "Password: *** is wrong"},
    {"client_secret = s", "client_secret = *"},
    {"AWS_SECRET_ACCESS_KEY=wJalr/XUtn+FEMI", "AWS_SECRET_ACCESS_KEY=***"},
    {"mysql --password hunter2 --host h", "mysql --password *** --host h"},
    {"python train.py --hf-token abcdefgh --lr 1", "python train.py --hf-token *** --lr 1"},
    {"Authorization: Basic dXNlcjpwYXNz\nnext", "Authorization: ***\nnext"},
    {"headers={'Authorization': 'Bearer abc'}", "headers={'Authorization': '***'}"},
    {"Authorization: abcdefgh1 and more", "Authorization: *** and more"},
    {"sent Bearer abcdefgh12 to", "sent Bearer *** to"},
    {"found " HF ".", "found hf_***."},
    {"ghp_0123456789abcdefghij", "ghp_***"},
    {"github_pat_11ABC_0123456789abcdef", "github_pat_***"},
    {"id AKIA0123456789ABCDEF!", "id AKIA***!"},
    {"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc-_x", "jwt eyJ***"},
    {"wandb: ERROR " HEX40, "wandb: ERROR ***"},
    {"-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nx",
     "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\nx"},
    {"-----BEGIN PRIVATE KEY-----\nMIIE", "-----BEGIN PRIVATE KEY-----***"},
    {"passwort=\xc3\xa4\xc3\xb6\xc3\xbc!", "passwort=***"},
};

/* What programs write every day. */
static const char *const KEPT[] = {
    "",
    "epoch 1/3: loss 0.25, 1024 tokens/s",
    "total_batch_tokens=524288 max_token=50257",
    "KeyError: 'model.layers.0.weight'",
    "RuntimeError: Error(s) in loading state_dict: Missing key(s) in state_dict: \"fc.weight\"",
    "pad_token='[PAD]' eos_token=<|endoftext|>",
    "SyntaxError: unexpected token: identifier",
    "ValueError: invalid token: '}'",
    "def login(token: Optional[str] = None):",
    "sorted(rows, key=lambda r: r.step)",
    "if token == other_token_value:",
    "cache[key] = compute_everything(row)",
    "batch[\"token\"] = tokenizer(text)",
    "config['password']: expected a text",
    "Command ['mysql', '--password'] returned 1",
    "seen[secret] = True",
    "std::key::value token::Type http://host/path?x=1@2",
    "hf_hub_download(repo_id=\"gpt2\") sk-learn-contrib-extra",
    "commit " HEX40,
    "exitcode  : -9 (pid: 1234)",
    "{\"rank\":3,\"exitCode\":137,\"signal\":9,\"host\":\"j-node-3\",\"message\":\"boom\",\"noProgress\":"
    "true}",
    "git@github.com:o/r.git",
    "may require authorization: server message: insufficient_scope: authorization failed",
    "Unable to locate credentials: run the command that makes them",
    "MountVolume.SetUp failed for volume \"v\" : secret \"creds\" not found",
    "couldn't find key password in Secret ns/db",
};

static void check(const char *in, const char *want)
{
    char *text = strdup(in);

    redact_secrets(text);
    if (strcmp(text, want) != 0)
        fail_msg("%s\nbecame  %s\nwant    %s", in, text, want);
    redact_secrets(text);
    assert_string_equal(text, want);
    free(text);
}

static void test_secrets_are_hidden(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(HIDDEN); i++)
        check(HIDDEN[i][0], HIDDEN[i][1]);
}

static void test_other_words_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(KEPT); i++)
        check(KEPT[i], KEPT[i]);
}

/* Pieces by chance, with a secret among them that stands as it may: it never comes out. */
static void test_a_secret_among_anything(void **state)
{
    static const char *const NOISE[] = {" ",   "\n",      "\"", "'",        "\\n",  ":",    "=",     "loss",
                                        "://", "@",       "--", "\xc3\xa4", "{",    "\\\"", "key",   "token",
                                        "-",   "Bearer ", "x",  "passw",    "0.25", "/",    "-----", "\\"};
    static const char *const AS[][2] = {
        {"\npassword=", " "}, {"\ntoken='", "'\n"},       {"\n\"secret\": \"", "\" "}, {"\nhf_", " "},
        {"\n--token ", " "},  {"\n https://", "@host/ "}, {"\\nAPI_KEY=", "\\n"}};
    static const char SECRET[] = "s3cr3tS3cr3tS3cr3t";
    uint64_t seed = seed_of_run();

    (void)state;
    for (int run = 0; run < 20000; run++) {
        char text[1024] = "", before[1024], with[64];
        int n = (int)(random_next(&seed) % 30), at = n ? (int)(random_next(&seed) % (uint64_t)n) : -1;
        for (int i = 0; i < n; i++) {
            const char *const *as = AS[random_next(&seed) % ARRAY_LEN(AS)];
            snprintf(with, sizeof(with), "%s%s%s", as[0], SECRET, as[1]);
            strcat(text, i == at ? with : NOISE[random_next(&seed) % ARRAY_LEN(NOISE)]);
        }
        strcpy(before, text);
        redact_secrets(text);
        if (strlen(text) > strlen(before) || strstr(text, SECRET))
            fail_msg("%s\nbecame %s", before, text);
        strcpy(before, text);
        redact_secrets(text);
        assert_string_equal(text, before);
    }
}

/* The text never grows, and nothing is read or written beyond it (the copy is of its size). */
static void test_any_bytes(void **state)
{
    uint64_t seed = seed_of_run();

    (void)state;
    for (int run = 0; run < 2000; run++) {
        char text[257];
        size_t n = random_next(&seed) % 256;
        for (size_t i = 0; i < n; i++)
            text[i] = (char)(1 + random_next(&seed) % 255);
        text[n] = '\0';
        char *copy = strdup(text);
        redact_secrets(copy);
        assert_true(strlen(copy) <= n);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secrets_are_hidden),
        cmocka_unit_test(test_other_words_stay),
        cmocka_unit_test(test_a_secret_among_anything),
        cmocka_unit_test(test_any_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
