package test

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
)

// metricName matches the name of a metric in a dashboard or an alert rule.
var metricName = regexp.MustCompile(`\brunner_[a-z_]+[a-z]\b`)

// TestDashboardsUseExistingMetrics checks that /metrics has all metrics that
// the files in contrib use.
func TestDashboardsUseExistingMetrics(t *testing.T) {
	source, err := os.ReadFile("web/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"contrib/grafana/runner.json", "contrib/prometheus/runner.rules.yml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := metricName.FindAllString(string(text), -1)
		if len(found) < 10 {
			t.Errorf("%s: got the metrics %v, want at least 10", name, found)
		}
		for _, metric := range found {
			if !regexp.MustCompile(`"` + metric + `"`).Match(source) {
				t.Errorf("%s: got the unknown metric %s, want only metrics of /metrics", name, metric)
			}
		}
	}
	var board struct{ Panels []any }
	text, err := os.ReadFile("contrib/grafana/runner.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &board); err != nil || len(board.Panels) == 0 {
		t.Errorf("contrib/grafana/runner.json: got error %v and %d panels, want none and at least one panel", err, len(board.Panels))
	}
}
