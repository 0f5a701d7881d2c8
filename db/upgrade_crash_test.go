package db

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"example.com/runner/db/dbtest/fault"
	"example.com/runner/db/schema"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

// TestUpgradeSurvivesEveryFailure checks that a failure during an upgrade
// leaves the old schema or the new one, with all rows.
func TestUpgradeSurvivesEveryFailure(t *testing.T) {
	columns := schema.Columns()
	b := fileBefore(t, filepath.Join(t.TempDir(), "x.db"), Options{})
	withStep(t, secondStep)
	k := &kit{dir: t.TempDir(), image: fault.Image{"": testkit.ReadFile(t, b.path)}}
	every := max(*stride, 7)
	points := 0
	for _, name := range slices.Sorted(maps.Keys(failures)) {
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
				b.upgradedImage(t, columns, fmt.Sprintf("%s at point %d, ever %v (%v)", name, n, ever, err), path)
			}
		}
	}
	t.Log(points, "runs")
}

// TestUpgradeSurvivesKillsAndPowerCuts checks that a kill or a power cut at
// any write of an upgrade loses no row.
func TestUpgradeSurvivesKillsAndPowerCuts(t *testing.T) {
	columns := schema.Columns()
	b := fileBefore(t, filepath.Join(t.TempDir(), "x.db"), Options{})
	withStep(t, secondStep)
	k := &kit{dir: t.TempDir()}
	images := cuts(t, k, fault.Image{"": testkit.ReadFile(t, b.path)})
	for i := 0; i < len(images); i += max(*stride, 3) {
		b.upgradedImage(t, columns, fmt.Sprintf("image %d", i), k.save(t, images[i]))
	}
}

// TestCreationSurvivesKillsAndPowerCuts does the same while a file is created.
func TestCreationSurvivesKillsAndPowerCuts(t *testing.T) {
	k := &kit{dir: t.TempDir()}
	images := cuts(t, k, fault.Image{"": nil})
	for i := 0; i < len(images); i += *stride {
		path := k.save(t, images[i])
		fault.Under(t, path)
		d, err := Open(t.Context(), path, Options{Create: true, Normal: true})
		if err != nil {
			t.Errorf("image %d: open: got error %v, want none", i, err)
			continue
		}
		if _, err := d.Insert(t.Context(), []jobs.Spec{jobs.Command(commands.Command{Argv: []string{"true"}})}, now()); err != nil {
			t.Errorf("image %d: insert: got error %v, want none", i, err)
		}
		_ = d.Close()
	}
}

// cuts opens a file and returns what a kill and a power cut after each write
// leave of it.
func cuts(t *testing.T, k *kit, image fault.Image) (images []fault.Image) {
	t.Helper()
	path := k.save(t, image)
	disk := fault.Under(t, path)
	disk.Decide(func(e fault.Event) fault.Code {
		if e.Op.Changes() {
			images = append(images, disk.Killed(), disk.PowerCut())
		}
		return fault.OK
	})
	d, err := Open(t.Context(), path, Options{Create: true})
	testkit.NoError(t, err)
	testkit.NoError(t, d.Close())
	disk.Decide(nil)
	t.Log(len(images), "images")
	if len(images) < 20 {
		t.Errorf("got %d images, want at least 20", len(images))
	}
	return images
}

// upgradedImage checks a copy of the file after a failure.
func (b before) upgradedImage(t *testing.T, columns map[string]bool, name, path string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		fault.Under(t, path)
		before{path, Options{Normal: true}, b.rows}.upgraded(t, columns)
	})
}
