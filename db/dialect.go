package db

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// The statements of this package are written for SQLite, in words that PostgreSQL understands, too, where there are such. What is left
// differs in a few words, which are changed in one place, on the way to the driver, once for each text; and in the few statements below.

// dialect turns statements into those of PostgreSQL, with the name of the schema before the names of what is ours: so they depend on no
// search path, and are the same in a transaction of the caller's.
type dialect struct {
	names names  // its prefix is the schema and a dot
	begin string // a transaction that has the write lock
	// beginShared is one that has it together with others that begin so.
	beginShared string
}

// words are what is said otherwise wherever it stands. A flag is a number on both engines; see serverConn.
var words = strings.NewReplacer(
	"FROM json_each(?)", "FROM jsonb_array_elements(CAST(? AS jsonb)) AS json_each (value)",
	"json_group_array(", "json_agg(",
	"CROSS JOIN", "JOIN", // which keeps SQLite from another order
	"+state =", "state =", // which keeps SQLite from another index
	" LIKE ?", " ILIKE ?", // SQLite's knows no case
)

// serverUses is selectUses where a flag is no number.
const serverUses = `SELECT CASE WHEN EXISTS (SELECT 1 FROM dependencies WHERE open = 1) THEN 1 ELSE 0 END +
	CASE WHEN EXISTS (SELECT 1 FROM limits) THEN 2 ELSE 0 END + CASE WHEN EXISTS (SELECT 1 FROM pauses) THEN 4 ELSE 0 END`

// serverSamples is selectSamples where each stretch is a seek: a list of ids would be looked up for each of all tasks.
const serverSamples = `WITH RECURSIVE stretches (step, at) AS (SELECT CAST(0 AS bigint), CAST(?1 AS bigint)
	UNION ALL SELECT step + 1, at + CAST(?2 AS bigint) FROM stretches WHERE step + 1 < ?3)
SELECT step, ended.started_at - ended.run_at AS wait, ended.finished_at - ended.started_at AS duration FROM stretches, LATERAL (SELECT * FROM tasks
	WHERE finished_at >= stretches.at AND finished_at < stretches.at + CAST(?2 AS bigint) LIMIT ?4) AS ended WHERE ended.started_at IS NOT NULL`

// serverArm is an arm of a claim: the first tasks of one job, up to the number of parameter %[2]s, without those that another transaction
// has locked.
const serverArm = `SELECT * FROM (%[1]s ORDER BY priority DESC, id LIMIT %[2]s FOR UPDATE SKIP LOCKED) AS arm%[3]d`

// serverCancel is cancelTask with PostgreSQL's functions of JSON.
const serverCancel = `UPDATE tasks SET state = 'cancelled', generation_id = generation_id + 1, waits = NULL,
	outcome = CAST(coalesce(CAST(outcome AS jsonb), '{"duration":0}') || jsonb_build_object('reason', 'cancelled', 'error', CAST(? AS text)) AS json),
	finished_at = ?, updated_at = ?
WHERE id = ? AND (state = 'scheduled' OR state = 'pending' OR state = 'blocked' OR state = 'retrying') RETURNING queue, coalesce(lane, '')`

// differing are the statements that PostgreSQL says otherwise.
var differing = sync.OnceValue(func() map[string]string {
	list := map[string]string{
		selectUses:    serverUses,
		cancelTask:    serverCancel,
		renewLeases:   strings.Replace(renewLeases, "max(", "greatest(", 1),
		selectLatest:  strings.Replace(selectLatest, "max(coalesce", "greatest(coalesce", 1),
		selectSamples: serverSamples,
		insertTask:    serverInsert(insertTask),
	}
	for _, text := range insertTasks {
		list[text] = serverInsert(text)
	}
	return list
})

// serverInsert is insertTask, or one of insertTasks, without the ids, which the server gives and returns.
func serverInsert(text string) string {
	return strings.NewReplacer("(id, ", "(", "(?, 1, ", "(1, ").Replace(text) + " RETURNING id"
}

// in returns a statement as PostgreSQL is to get it.
func (d *dialect) in(text string) string {
	if text == begin {
		return d.begin
	}
	return d.names.remembered(text, d.translate)
}

func (d *dialect) translate(text string) string {
	text = words.Replace(cmp.Or(differing()[text], text))
	text = strings.ReplaceAll(d.names.put(text), " runner_schema", " "+d.names.prefix+"runner_schema") // which files have without a prefix
	return numberedBy(text, '$')
}

// reads says of a statement that it changes nothing: none that begins so does.
func reads(text string) bool {
	return strings.HasPrefix(text, "SELECT ") || strings.HasPrefix(text, "WITH RECURSIVE ")
}

// claimText is the claim for PostgreSQL: no UNION can lock rows, so that each arm is a SELECT of its own that does, up to the limit, and
// passes over those that another transaction has locked.
func (d *dialect) claimText(statement, arm string, jobs int) string {
	limit := "?" + strconv.Itoa(3*jobs+1)
	var arms []string
	for i := range jobs {
		n := 0
		arms = append(arms, fmt.Sprintf(serverArm, d.typed(numberedFrom(arm, '?', 3*i, &n)), limit, i))
	}
	whole := strings.Replace(statement, "%s", strings.Join(arms, " UNION ALL "), 1)
	head, tail, _ := strings.Cut(whole, "LIMIT 0 + ?")
	n := 0
	return head + "LIMIT " + limit + numberedFrom(tail, '?', 3*jobs+1, &n)
}

// typed gives a parameter that is selected a type.
func (d *dialect) typed(arm string) string {
	head, tail, ok := strings.Cut(arm, " AS most")
	if !ok {
		return arm
	}
	at := strings.LastIndexByte(head, '?')
	return head[:at] + "CAST(" + head[at:] + " AS bigint) AS most" + tail
}

// numberedBy gives the placeholders of a statement numbers, ? as $1 and ?2 as $2.
func numberedBy(text string, mark byte) string {
	n := 0
	return numberedFrom(text, mark, 0, &n)
}

// numberedFrom is numberedBy that begins after from, and leaves how many there were in n. What stands in quotes and comments is no placeholder.
func numberedFrom(text string, mark byte, from int, n *int) string {
	if !strings.Contains(text, "?") {
		return text
	}
	var out strings.Builder
	out.Grow(len(text) + 32)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '"':
			end := strings.IndexByte(text[i+1:], c)
			if end < 0 {
				return out.String() + text[i:]
			}
			out.WriteString(text[i : i+end+2])
			i += end + 1
		case c == '?':
			out.WriteByte(mark)
			if i+1 < len(text) && '0' <= text[i+1] && text[i+1] <= '9' {
				continue // it has a number
			}
			*n++
			out.WriteString(strconv.Itoa(from + *n))
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}
