//go:build unix

package main

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// These are values that a program may write with SQL, by mistake or to do
// damage: the extreme values of each type, and values with which careless code
// fails. The long ones are made when they're needed, because this program also
// starts as each runner of a script.

var extremeNumbers = []any{int64(math.MinInt64), int64(math.MinInt64 + 1), int64(-62167219200001), int64(-1 << 53), int64(-1 << 31),
	int64(-1000), int64(-1), int64(0),
	int64(1), int64(2), int64(10), int64(1000), int64(1<<31 - 1), int64(1 << 31), int64(1 << 53), int64(253402300799999),
	int64(253402300800000),
	int64(6248034633600000), int64(math.MaxInt64/1000 + 1), int64(math.MaxInt64 - 1), int64(math.MaxInt64)}

var extremeReals = []any{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1.5, -0.5, math.Copysign(0,
	-1)}

var extremeTexts = sync.OnceValue(func() []any {
	return []any{"", " ", "a", "0", "-1", "-f", "--help", "a\x00b", "\x00", "\xff\xfe", "a\xc3", "\xed\xa0\x80", "é", "日本語",
		"\u202egnp.exe", "\x1b]0;x\x07", "\x1b[2J", "\r\n", "\t",
		"'; DROP TABLE tasks; --", "%s%n", "{{.}}", "<script>alert(1)</script>", "../../etc/passwd", "$HOME", "*", "q1", "q2",
		"l1", "command",
		"exponential",
		"fixed", "pending", "scheduled", "blocked", "running", "retrying", "completed", "failed", "cancelled", "queue", "job",
		"lane", "skip",
		"all", "one", "allow",
		"replace", "UTC", "* * * * *", "@every 1s", "@every 1ns", "@every 999999h", "0 0 30 2 *", "75,100-111", "0-255", "-", "256",
		strings.Repeat("x", 201), strings.Repeat("0,", 600),
		strings.Repeat("é", 100), strings.Repeat("x", 200_000), strings.Repeat("\x01", 8192)}
})

var extremeJSON = sync.OnceValue(func() []any {
	return []any{`["true"]`, `["false"]`, `["sh","-c","exit 3"]`, `["sh","-c","echo a; echo b >&2; printf '\\377\\000'"]`,
		`["sh","-c","echo '{' >$RUNNER_RESULT"]`, `["cat"]`,
		`["nosuchprogram"]`, `["/"]`, `["sh","-c","kill -9 $$"]`, `["true","\u0000"]`, `["true","\ud800"]`, "[\"true\",\"\xff\"]",
		`[""]`, `[]`,
		`{}`, `null`, `1`, `""`, `[null]`, `[1]`, `[2]`,
		`[0]`, `[-1]`, `[9223372036854775807]`, `[9223372036854775808]`, `[1e999]`, `[1.5]`, `{"A":"b"}`, `{"A":1}`, `{"A":"\u0000"}`,
		`{"A=B":"c"}`, `{"":"c"}`, `{"PATH":""}`,
		"{\"\xff\":\"\xfe\"}", `{"A":"b","A":"c"}`, `{`, `[1,`, `nul`, `NaN`, `[1]x`, "[1]\x00", "[1]\x00x", "\ufeff[1]", `{a:1}`, `[1,]`,
		"// c\n[1]", `'x'`, `0x10`,
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000), strings.Repeat("[", 1001) + strings.Repeat("]", 1001),
		strings.Repeat("[", 500_000),
		`["true"` + strings.Repeat(`,"x"`, 100_000) + `]`, `["true","` + strings.Repeat("x", 200_000) + `"]`, `[` + strings.Repeat("1,",
			100_000) + `1]`,
		`{"A":"` + strings.Repeat("\x7f", 100_000) + `"}`, `{"args":["true"],"queue":"q1"}`, `{"argv":["true"]}`,
		`{"job":"command","args":["true"],"queue":"q1","max_losses":3}`,
		`{"job":"command","args":["true"],"queue":"q1","max_losses":3,"options":{"timeout":"x","kill_after":null}}`,
		`{"job":"command","args":["true"],"queue":"q1","max_losses":3,"options":[1],"expires_in":-9223372036854775808}`}
})

// extremeObjects are values for the columns options and outcome, which contain
// JSON objects.
var extremeObjects = []any{`{}`, `{"timeout":1}`, `{"timeout":0}`, `{"timeout":-1}`, `{"timeout":9223372036854775807}`, `{"timeout":1e999}`,
	`{"timeout":"x"}`,
	`{"kill_after":null}`, `{"kill_after":1.5}`, `{"backoff":1}`, `{"backoff":"never","backoff_delay":-5}`,
	`{"backoff_max":9223372036854775807}`,
	`{"retry_on":"9-1"}`, `{"retry_on":7}`, `{"output_limit":-1}`, `{"output_limit":1e400}`, `{"env":{"A":1}}`, `{"env":{"A=B":"\u0000"}}`,
	`{"env":[]}`,
	`{"path":{"base64":"!"}}`, `{"path":{"base64":"/w=="}}`, `{"path":{}}`, `{"cwd":"relative"}`, `{"env_file":"/dev/zero"}`,
	`{"unheard":{"of":1}}`, `{"":1}`,
	`{"timeout":1,"timeout":2}`, `{"reason":1}`, `{"reason":"no such reason"}`,
	`{"reason":"exit","error":"a\u0000\u001b[2J","exit_code":1e99}`,
	`{"error":[1]}`, `{"exit_code":-1}`, `{"exit_code":9223372036854775808}`, `{"signal":999999}`, `{"duration":-1}`,
	`{"duration":9223372036854775807}`,
	`{"duration":1.5}`, `{"duration":"x"}`, `{"output_bytes":[]}`, `{"output_truncated":1}`}

var extremeBytes = sync.OnceValue(func() []any {
	return []any{[]byte{}, []byte{0}, []byte{0xff, 0xfe}, []byte("text"), bytes.Repeat([]byte{0}, 100_000)}
})

// rowValues makes random values for columns.
type rowValues struct {
	*rand.Rand
	files []any // paths that extremeFiles has returned
}

// of returns a random value for a column. Most are plausible for its name, some
// are of any kind.
func (v *rowValues) of(column string) any {
	pools := [][]any{extremeNumbers, extremeReals, extremeTexts(), extremeJSON(), extremeBytes(), v.files, {nil}}
	switch n := v.IntN(1000); {
	case n < 250:
		return v.from(pools[v.IntN(len(pools))])
	case n < 252:
		return strings.Repeat("x", large(column))
	case n < 254:
		return bytes.Repeat([]byte("y"), large(column)+v.IntN(2))
	case n < 300:
		return nil
	case n < 400 && strings.HasSuffix(column, "_at"):
		return time.Now().Add(time.Duration(v.IntN(2000)-1000) * time.Millisecond).UnixMilli()
	}
	switch column {
	case "args", "after", "after_any", "env", "result", "report", "task", "value":
		return v.from(extremeJSON())
	case "options", "outcome":
		return v.from([][]any{extremeObjects, extremeObjects, extremeJSON()}[v.IntN(3)])
	case "cwd", "env_file", "path":
		return v.from(v.files)
	case "input", "data":
		return v.from([][]any{extremeBytes(), extremeTexts()}[v.IntN(2)])
	case "job", "label", "queue", "state", "reason", "unique_key", "backoff", "retry_on", "text", "created_by",
		"schedule", "lane", "name",
		"kind", "cron", "zone", "overlap", "catch_up", "paused_by", "kept_state":
		return v.from(extremeTexts())
	}
	return v.from(extremeNumbers)
}

// large is a size near the limit of bytes, and above that of every other
// column. (A page reads some columns again and again: with 16 MB in each it
// would need more than its two seconds on a busy machine.)
func large(column string) int {
	if column == "data" || column == "input" {
		return 16 << 20
	}
	return 2 << 20
}

func (v *rowValues) from(pool []any) any { return pool[v.IntN(len(pool))] }
