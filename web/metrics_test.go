package web_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

// scrape requests the metrics as Prometheus does.
func scrape(t *testing.T, s *site) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(s.page("/metrics")))
	testkit.NoError(t, err)
	return families
}

// value returns the value of the metric with these labels, each in the form
// name=value. It returns -1 if there is no such metric.
func value(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	f := families[name]
	for _, m := range f.GetMetric() {
		var have []string
		for _, l := range m.GetLabel() {
			have = append(have, l.GetName()+"="+l.GetValue())
		}
		slices.Sort(have)
		slices.Sort(labels)
		switch {
		case !slices.Equal(have, labels):
		case m.Counter != nil:
			return m.Counter.GetValue()
		case m.Gauge != nil:
			return m.Gauge.GetValue()
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount())
		}
	}
	return -1
}

func TestMetrics(t *testing.T) {
	r := open(t)
	s := serve(t, r, web.ServerOptions{})
	shell(t, r, "exit 22", jobs.Queue("media"))
	shell(t, r, "true")
	shell(t, r, "true")
	testkit.NoError(t, r.SetSchedule(t.Context(), jobs.Schedule{Name: "nightly", Cron: "0 3 * * *",
		Spec:       jobs.Command(command.Shell("true")),
		AlertAfter: time.Hour}))
	families := scrape(t, s)
	for _, test := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "runner_tasks", []string{"queue=default", "state=pending"}},
		{0, "runner_tasks", []string{"queue=default", "state=running"}},
		{1, "runner_tasks", []string{"queue=media", "state=pending"}},
		{0, "runner_queue_paused", []string{"queue=media"}},
		{0, "runner_workers", nil},
		{0, "runner_slots", []string{"state=busy"}},
		{0, "runner_schedule_skipped_total", []string{"schedule=nightly"}},
		{0, "runner_schedule_late", []string{"schedule=nightly"}},
		{1, "runner_build_info", []string{"version=0.1.0"}},
		{0, "runner_fenced_total", nil},
	} {
		if got := value(families, test.name, test.labels...); got != test.want {
			t.Errorf("%s%v: got %v, want %v", test.name, test.labels, got, test.want)
		}
	}
	if at := value(families, "runner_schedule_next_timestamp_seconds", "schedule=nightly"); at < 1.7e9 {
		t.Errorf("next tick: got %v, want at least 1.7e9", at)
	}
	if n := value(families, "runner_db_bytes", "file=db"); n < 4096 {
		t.Errorf("size of the database: got %v, want at least 4096", n)
	}
	runnerkit.Drain(t, r, web1)
	families = scrape(t, s)
	for _, test := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "runner_attempts_total", []string{"queue=default", "job=command", "result=completed"}},
		{1, "runner_attempts_total", []string{"queue=media", "job=command", "result=exit"}},
		{0, "runner_losses_total", []string{"queue=default"}},
	} {
		if got := value(families, test.name, test.labels...); got != test.want {
			t.Errorf("%s%v: got %v, want %v", test.name, test.labels, got, test.want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		if total := strings.HasSuffix(name, "_total"); total != (f.GetType() == dto.MetricType_COUNTER) {
			t.Errorf("%s: got type %v, want a counter exactly for names that end in _total", name, f.GetType())
		}
		if f.GetHelp() == "" || !strings.HasPrefix(name, "runner_") {
			t.Errorf("%s: got help %q; want a help text and the prefix runner_", name, f.GetHelp())
		}
	}
}

// TestMetricsDoNotContainTextsOfFailures checks that the metrics contain no
// text of an error, an error line, an argument or a task's label. As the value
// of a metric label, each text would create a time series of its own. The text
// could also be secret.
func TestMetricsDoNotContainTextsOfFailures(t *testing.T) {
	r := open(t)
	s := serve(t, r, web.ServerOptions{})
	scrape(t, s)
	shell(t, r, "echo 'no route to host-of-line' >&2; exit 7", jobs.Label("label-of-task"), jobs.MaxAttempts(1))
	failing := jobs.Define[string]("failing")
	r.Register(failing.Handler(func(context.Context, string) error { return errors.New("text-of-error") }))
	runnerkit.Enqueue(t, r, failing.With("argument-of-task", jobs.MaxAttempts(1)))
	runnerkit.Drain(t, r, web1)
	text := s.page("/metrics")
	testkit.Contains(t, text, `result="exit"`, `result="error"`)
	testkit.ContainsNone(t, text, "host-of-line", "no route", "exit status", "label-of-task", "text-of-error", "argument-of-task")
}

func TestScrapeWaitsForEarlierOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := web.Handler(open(t), openToAll)
		end := web.BeginScrape(h)
		get := func() *httptest.ResponseRecorder {
			answer := httptest.NewRecorder()
			go h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
			synctest.Wait()
			return answer
		}

		late := get()
		time.Sleep(time.Minute)
		synctest.Wait()
		testkit.Equal(t, "status after a minute", late.Code, http.StatusServiceUnavailable)
		testkit.Contains(t, late.Body.String(), "an earlier scrape still runs")

		soon := get()
		end()
		synctest.Wait()
		testkit.Equal(t, "status after the earlier scrape", soon.Code, http.StatusOK)
		testkit.Contains(t, soon.Body.String(), "runner_workers")
	})
}
