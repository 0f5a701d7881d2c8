package db

import (
	"testing"

	"example.com/runner/db/internal/sqlite"
)

// BenchmarkRender measures two costs: to render all statements of this package,
// and to render only the three statements of an enqueue. Open renders nothing,
// because each statement is rendered when it is first used. So Open saves the
// first cost.
func BenchmarkRender(b *testing.B) {
	var all []*statement
	for _, p := range plans {
		all = append(all, p.Statement())
	}
	for name, list := range map[string][]*statement{"all": all, "enqueue": {insertTask, selectFeatures, selectHolder}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				dialect := sqlite.Dialect("")
				for _, s := range list {
					dialect.Text(s)
				}
			}
			b.ReportMetric(float64(len(list)), "statements")
		})
	}
}
