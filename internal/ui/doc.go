// Package ui is what people see: sentences about tasks, errors and problems,
// the records of --json and --format, tables and drawings for a terminal. The
// pages use the same sentences and records. It also has the exit statuses and
// the signals that end a command.
//
// Commands print through a Printer and never to os.Stdout. The rules:
//
//   - Commands write the answer to stdout and messages to stderr. Nothing else
//     goes to stdout.
//   - An error says what failed, why it failed and what to try. It is in lower
//     case, without a full stop, and has at most five lines. Only -v shows the
//     chain of causes.
//   - Hints and notes appear only when stdout and stderr are both terminals. A
//     cron job that succeeds prints nothing.
//   - On a terminal, tables are not wider than the terminal. Elsewhere the
//     output is complete and separated by tabs. It has no header and no
//     colours, and its times are in RFC 3339.
//   - --json prints JSON Lines: one object per line, always with every key. An
//     empty answer prints nothing.
//   - The words contain all information, and colours only repeat it.
//   - The names and the output of jobs cannot control the terminal, because the
//     Printer escapes control characters. logs, wait, run and --tee pass on the
//     output of a task byte for byte; a terminal gets it through a Shield.
package ui
