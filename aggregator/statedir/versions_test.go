package statedir

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protojson"
)

var update = flag.Bool("update", false, "write testdata/versions/*.golden anew")

// TestEveryVersionIsRead reads directories that each version of the format was written with: by the weft of
// e392371 (1), and of this one with a publisher of the configuration (2) and the shares of tables
// apart from the record (3), and with an element that has a timeout (4), as it writes them after a change. Each had the
// durable fragments keep and agent, and a sticky one.
func TestEveryVersionIsRead(t *testing.T) {
	const versions = "testdata/versions"
	all, err := filepath.Glob(filepath.Join(versions, "*", ""))
	must(t, err)
	if found := strings.Join(all, " "); !strings.Contains(found, versions+"/1 ") || !strings.Contains(found, versions+"/2") {
		t.Fatalf("versions %s", found)
	}
	for v := 1; v <= lastVersion; v++ {
		if _, err := os.Stat(filepath.Join(versions, fmt.Sprint(v))); err != nil {
			t.Errorf("there is no directory that a weft with version %d wrote: %v", v, err)
		}
	}
	for _, from := range all {
		if strings.HasSuffix(from, ".golden") {
			continue
		}
		t.Run(filepath.Base(from), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			must(t, os.CopyFS(dir, os.DirFS(from)))
			must(t, makePrivate(dir))
			d, c := load(t, dir)
			if !c.Trusted {
				t.Error("the record is not trusted")
			}
			golden := from + ".golden"
			got := describe(t, c)
			if *update {
				must(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			must(t, err)
			if got != string(want) {
				t.Errorf("contents\n%s\nwant those of %s\n%s", got, golden, want)
			}
			// What this version writes is the same.
			must(t, d.Close())
			d, c = load(t, dir)
			if again := describe(t, c); again != got {
				t.Errorf("contents after a start\n%s\nbefore\n%s", again, got)
			}
			if v := storedVersion(t, d); v != map[string]string{"1": "1", "2": "2", "3": "2", "4": "4"}[filepath.Base(from)] {
				t.Errorf("this version wrote version %s", v)
			}
		})
	}
}

// makePrivate takes the rights of others away, which git does not keep.
func makePrivate(dir string) error {
	return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, 0o700) //nolint:gosec // a directory
		}
		return os.Chmod(path, 0o600)
	})
}

// describe returns contents as text.
func describe(t *testing.T, c *Contents) string {
	t.Helper()
	var b strings.Builder
	record, err := json.MarshalIndent(c.Record, "", "\t")
	must(t, err)
	fmt.Fprintf(&b, "record %s\nflows %v\n", record, c.Flows)
	for _, f := range c.Fragments {
		text, err := protojson.Marshal(sorted(f.Content))
		must(t, err)
		// protojson varies its spaces on purpose.
		var content any
		must(t, json.Unmarshal(text, &content))
		text, err = json.MarshalIndent(content, "", "\t")
		must(t, err)
		fmt.Fprintf(&b, "fragment %s, configured %t: %s\n", f.Key, f.Configured, text)
	}
	return b.String()
}

func storedVersion(t *testing.T, d *Dir) (version string) {
	t.Helper()
	must(t, d.db.View(func(tx *bolt.Tx) error {
		b, err := getState(tx, versionKey)
		version = string(b)
		return err
	}))
	return version
}

// TestVersionIsTheFirstThatFits stores fragments with and without the mark of the configuration: a weft that does not know
// the mark reads what has none.
func TestVersionIsTheFirstThatFits(t *testing.T) {
	dir := t.TempDir()
	d, _ := load(t, dir)
	want := func(version string) {
		t.Helper()
		if got := storedVersion(t, d); got != version {
			t.Fatalf("version %s, want %s", got, version)
		}
	}
	again := func() {
		t.Helper()
		must(t, d.Close())
		d, _ = load(t, dir)
	}
	must(t, storeNow(d, snapshot(fragment("small", 1)), snapshot(fragment("large", partEntries+1))))
	want("1")
	again()
	want("1")
	for _, n := range []int{1, partEntries + 1} {
		marked := snapshot(fragment("marked", n))
		marked.Configured = true
		must(t, storeNow(d, marked))
		want("2")
		again()
		want("2")
		// Without it the next start has room for all in the first version again.
		must(t, storeNow(d, Change{Fragment: key("marked")}))
		again()
		want("1")
	}
}

// TestLineage is the same at each start, and another one after a version that does not know it: the database
// that such a version writes lacks the bucket.
func TestLineage(t *testing.T) {
	dir := t.TempDir()
	d, first := load(t, dir)
	must(t, d.Close())
	d, again := load(t, dir)
	if first.Lineage == "" || again.Lineage != first.Lineage {
		t.Errorf("lineages %q and %q, want the same", first.Lineage, again.Lineage)
	}
	must(t, d.update(func(tx *bolt.Tx) error { return tx.DeleteBucket(lineageBucket) }))
	must(t, d.Close())
	_, c := load(t, dir)
	if c.Lineage == "" || c.Lineage == first.Lineage {
		t.Errorf("lineage %q after another version, before it %q", c.Lineage, first.Lineage)
	}
}
