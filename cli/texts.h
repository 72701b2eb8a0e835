/* texts.h - files of this folder that are part of the program, each with a NUL at its end (cmake/embed.cmake). */
#ifndef TK_CLI_TEXTS_H
#define TK_CLI_TEXTS_H

extern const char causes_yaml[];
extern const char completion_txt[], convert_txt[], logs_txt[], run_txt[], submit_txt[], watch_txt[],
    why_txt[]; /* of --help */
extern const char completion_bash[], completion_zsh[], completion_fish[];

#endif
