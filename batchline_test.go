package main

import (
	"os"
	"testing"

	"example.com/runner/jobs"
)

func testLines(t testing.TB, base jobs.Spec) *lineReader {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"convert.sh", "true"} {
		if err := os.WriteFile(dir+"/"+name, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return newLineReader(enqueueOptions{spec: base, caller: caller{dir: dir, path: dir}})
}

func BenchmarkBatchLine(b *testing.B) {
	for _, test := range []struct{ name, line string }{
		{"array", `["convert.sh","in.mov","out.mp4"]`},
		{"short", `{"args":["convert.sh","in.mov","out.mp4"],"queue":"media"}`},
		{"record", `{"id":1040,"job":"command","args":["convert.sh","in.mov"],"label":null,"queue":"default","state":"pending","reason":null,"priority":5,"lane":null,"unique_key":null,"after":[],"after_any":[],"schedule":null,"run_at":"2026-01-31T13:12:03.000Z","expires_at":null,"attempt":0,"max_attempts":3,"losses":0,"max_losses":3,"timeout":30,"kill_after":10,"backoff":"exponential","backoff_delay":24,"backoff_max":3600,"retry_on":null,"output_limit":1048576,"path":"/usr/bin/curl","cwd":"/srv/app","env":null,"env_file":null,"input_bytes":0,"generation_id":6,"worker_id":null,"worker":null,"lease_expires_at":null,"cancel_requested_at":null,"created_at":"2026-01-31T13:02:11.004Z","created_by":"ann","updated_at":"2026-01-31T13:11:15.220Z","started_at":null,"finished_at":null,"duration":null,"result":null,"error":null,"exit_code":null,"signal":null,"output_bytes":0,"output_truncated":false,"progress":null}`},
		{"function", `{"job":"email.send","args":{"to":"someone@example.com","subject":"a payload of about one hundred bytes","n":1}}`},
	} {
		b.Run(test.name, func(b *testing.B) {
			l := testLines(b, jobs.Command{}.With())
			l.base.Job = ""
			b.ReportAllocs()
			for b.Loop() {
				spec, err := l.spec([]byte(test.line))
				if err == nil {
					err = spec.Validate()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
