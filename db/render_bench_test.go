package db

import (
	"testing"

	"example.com/runner/db/internal/sqlite"
)

// BenchmarkRender renders all statements of this package, as Open would do if it rendered them, and the three statements of an enqueue.
func BenchmarkRender(b *testing.B) {
	var all []*statement
	for _, p := range plans {
		all = append(all, p.Statement())
	}
	for name, list := range map[string][]*statement{"all": all, "enqueue": {insertTask, selectFeatures, selectUnique}} {
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
