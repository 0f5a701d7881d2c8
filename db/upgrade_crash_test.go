package db

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"example.com/runner/db/dbtest/fault"
	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
)

// TestAnUpgradeSurvivesEveryFailure checks that a failure during an upgrade leaves the old schema or the new one, with all data.
func TestAnUpgradeSurvivesEveryFailure(t *testing.T) {
	for _, o := range olds(t) {
		every := max(*stride, 7)
		t.Run(fmt.Sprint(o.version), func(t *testing.T) {
			t.Parallel()
			k := &kit{dir: t.TempDir()}
			k.image = fault.Image{"": testkit.ReadFile(t, o.write(t))}
			names := slices.Sorted(maps.Keys(failures))
			points := 0
			for _, name := range names {
				f := failures[name]
				for n, met := 1, true; met; n += every {
					for _, ever := range []bool{false, true} {
						path := k.save(t, k.image)
						disk := fault.Under(t, path)
						hit := point(disk, n, f.counts, f.code, ever)
						d, err := Open(t.Context(), path, patience)
						met = *hit
						points++
						if err == nil {
							_ = d.Close()
						}
						disk.Decide(nil)
						o.upgraded(t, fmt.Sprintf("%s at point %d, ever %v (%v)", name, n, ever, err), path)
					}
				}
			}
			t.Log(points, "runs")
		})
	}
}

// TestAnUpgradeSurvivesKillsAndPowerCuts checks that a kill or a power cut during an upgrade loses no data. It does the same for the
// creation of a new file.
func TestAnUpgradeSurvivesKillsAndPowerCuts(t *testing.T) {
	for _, o := range append(olds(t), old{}) {
		every := *stride
		if o.version > 0 {
			every = max(every, 3)
		}
		t.Run(fmt.Sprint(o.version), func(t *testing.T) {
			t.Parallel()
			k := &kit{dir: t.TempDir()}
			k.image = fault.Image{"": nil}
			if o.version > 0 {
				k.image[""] = testkit.ReadFile(t, o.write(t))
			}
			path := k.save(t, k.image)
			disk := fault.Under(t, path)
			var images []fault.Image
			disk.Decide(func(e fault.Event) fault.Code {
				if e.Op.Changes() {
					images = append(images, disk.Killed(), disk.PowerCut())
				}
				return fault.OK
			})
			d, err := Open(t.Context(), path, Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			disk.Decide(nil)
			for i := 0; i < len(images); i += every {
				path := k.save(t, images[i])
				if o.version > 0 {
					o.upgraded(t, fmt.Sprintf("image %d", i), path)
					continue
				}
				fault.Under(t, path)
				d, err := Open(t.Context(), path, Options{Create: true, Normal: true})
				if err != nil {
					t.Errorf("image %d: open: got error %v, want none", i, err)
					continue
				}
				if _, err := d.Insert(t.Context(), []jobs.Spec{jobs.Command{Argv: []string{"true"}}.With()}, now()); err != nil {
					t.Errorf("image %d: insert: got error %v, want none", i, err)
				}
				_ = d.Close()
			}
			t.Log(len(images), "images")
			if len(images) < 20 {
				t.Errorf("got %d images, want at least 20", len(images))
			}
		})
	}
}

// upgraded opens the database after a failure. It checks that the file is upgraded and undamaged, and that it has all data.
func (o old) upgraded(t *testing.T, name, path string) {
	t.Helper()
	fault.Under(t, path)
	d, err := Open(t.Context(), path, Options{Normal: true})
	if err != nil {
		t.Errorf("%s: open again: got error %v, want none", name, err)
		return
	}
	defer d.Close()
	if found, err := d.Integrity(t.Context(), true); err != nil || len(found) > 0 {
		t.Errorf("%s: integrity_check: got problems %v and error %v, want neither", name, found, err)
	}
	o.kept(t, d)
}
