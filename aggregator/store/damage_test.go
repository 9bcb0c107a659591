package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/nft/testing/nfttest"
)

// TestEveryDamageIsTold flips bits of a database and cuts it: the entries read are as stored, and
// lost ones are reported. The store goes on with the rest.
func TestEveryDamageIsTold(t *testing.T) {
	// With the first seed, a key becomes empty. With the second, a part has the pages of another one.
	for _, seed := range []uint64{13978793386136057670, 3743056842073817857, rand.Uint64()} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { tellDamage(t, seed) })
	}
}

func tellDamage(t *testing.T, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	original := t.TempDir()
	want := strings.SplitAfter(filled(t, original), "\n")
	content, err := os.ReadFile(filepath.Join(original, databaseName))
	must(t, err)
	content = bytes.TrimRight(content, "\x00")
	content = append(content, make([]byte, -len(content)&(os.Getpagesize()-1))...)
	flips := 150
	if testing.Short() {
		flips = 30
	}
	for i := range flips {
		damaged := bytes.Clone(content)
		bit := rnd.IntN(8 * len(damaged))
		damaged[bit/8] ^= 1 << (bit % 8)
		if i%10 == 0 {
			damaged = damaged[:rnd.IntN(len(damaged))]
		}
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, databaseName), damaged, 0o600))
		w := watch(dir)
		must(t, w.Load())
		got := w.dump(t)
		rest := got
		for _, line := range want {
			rest = strings.Replace(rest, line, "", 1)
		}
		if rest != "" {
			t.Fatalf("bit %d of %d bytes: this was not stored: %s", bit, len(damaged), rest)
		}
		for _, part := range []string{"whole", "single"} {
			lines := func(s string) int { return strings.Count("\n"+s, "\n"+part) }
			if n, m := lines(got), lines(strings.Join(want, "")); n < m && w.failed[part] == 0 {
				t.Fatalf("bit %d of %d bytes: %d of %d entries of %s are there, and reported is %v", bit, len(damaged), n, m, part, w.failed)
			}
		}
		if (len(w.failed) > 0) != strings.Contains(files(t, dir), damagedSuffix) {
			t.Fatalf("bit %d of %d bytes: failures %v, files %s", bit, len(damaged), w.failed, files(t, dir))
		}
		must(t, w.put("single/h", "c=3"))
		must(t, w.Close())
		if again := load(t, dir).dump(t); len(again) != len(got)+len("single/h c=3\n") {
			t.Fatalf("bit %d of %d bytes: what is left is\n%s\nand after a start\n%s", bit, len(damaged), got, again)
		}
	}
}

// TestDamageOfOneBucket changes a bucket with bbolt alone: its part is lost, or only the bucket.
func TestDamageOfOneBucket(t *testing.T) {
	for name, test := range map[string]struct {
		damage      func(tx *bolt.Tx) error
		part, loses string
	}{
		"value": {func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("single")).Bucket([]byte("f")).Put([]byte("key 0001"), nil)
		}, "single", "single/f"},
		"missing": {func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("single")).Bucket([]byte("f")).Delete([]byte("key 0001"))
		}, "single", "single/f"},
		"renamed": {func(tx *bolt.Tx) error {
			all := tx.Bucket([]byte("single"))
			to, err := all.CreateBucket([]byte("e"))
			return errors.Join(err, all.Bucket([]byte("f")).ForEach(to.Put), all.DeleteBucket([]byte("f")))
		}, "single", "single/f"},
		"bucket missing": {func(tx *bolt.Tx) error { return tx.Bucket([]byte("single")).DeleteBucket([]byte("f")) }, "single", "single/f"},
		"part missing":   {func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("single")) }, "single", "single"},
		"deep": {func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("whole")).Bucket([]byte("x")).DeleteBucket([]byte("y"))
		}, "whole", "whole"},
		"whole": {func(tx *bolt.Tx) error { return tx.Bucket([]byte("whole")).Put([]byte("c"), []byte("3")) }, "whole", "whole"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var want string
			for line := range strings.Lines(filled(t, dir)) {
				if !strings.HasPrefix(line, test.loses) {
					want += line
				}
			}
			path := filepath.Join(dir, databaseName)
			db, err := bolt.Open(path, 0o600, nil)
			must(t, err)
			must(t, errors.Join(db.Update(test.damage), db.Close()))
			w := watch(dir)
			must(t, w.Load())
			if got := w.dump(t); got != want {
				t.Errorf("what is left is\n%s\nwant\n%s", got, want)
			}
			if len(w.failed) != 1 || w.failed[test.part] != 1 || !w.Lost(test.part) || !strings.Contains(w.log.String(), path+damagedSuffix) {
				t.Errorf("failures %v, log %s", w.failed, w.log.String())
			}
			if got := files(t, dir); got != databaseName+" "+databaseName+damagedSuffix {
				t.Errorf("files %q", got)
			}
			must(t, w.Close())
			if got := load(t, dir).dump(t); got != want {
				t.Errorf("after another start\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestNoDatabase finds other things in the place of the database.
func TestNoDatabase(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"empty":              func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"text":               func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("weft "), 10_000), 0o600) },
		"zeros":              func(path string) error { return os.WriteFile(path, make([]byte, 1<<16), 0o600) },
		"directory":          func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) },
		"fifo":               func(path string) error { return unix.Mkfifo(path, 0o600) },
		"dangling link":      func(path string) error { return os.Symlink("/nowhere", path) },
		"link to a device":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"of another user":    func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 12345, -1)) },
		"socket":             func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) },
		"writable by others": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666)) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "of another user" {
				nfttest.Require(t, nfttest.Users)
			}
			dir := t.TempDir()
			path := filepath.Join(dir, databaseName)
			must(t, replace(path))
			w := watch(dir)
			must(t, w.Load())
			if w.failed["whole"] != 1 || w.failed["single"] != 1 || !strings.Contains(w.log.String(), path+damagedSuffix) {
				t.Errorf("failures %v, log %s", w.failed, w.log.String())
			}
			if _, err := os.Lstat(path + damagedSuffix); err != nil {
				t.Error(err)
			}
			must(t, w.put("whole", "a=1"))
			must(t, w.Close())
			if got := load(t, dir).dump(t); got != "whole a=1\n" {
				t.Errorf("content %q", got)
			}
		})
	}
}

// putVersion changes the version of a database, as another weft writes it.
func putVersion(t *testing.T, dir, version string) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, databaseName), 0o600, nil)
	must(t, err)
	must(t, errors.Join(db.Update(func(tx *bolt.Tx) error {
		value := fmt.Appendf(nil, "%s", version)
		sum := checksum(versionKey, value)
		for shift := 56; shift >= 0; shift -= 8 {
			value = append(value, byte(sum>>shift))
		}
		return tx.Bucket(stateBucket).Put(versionKey, value)
	}), db.Close()))
}

// TestOtherFormat has directories of other versions: their files are renamed, unchanged, with one line in the log.
func TestOtherFormat(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, dir string)
		files  string
		log    string
	}{
		"earlier": {func(t *testing.T, dir string) { putVersion(t, dir, "4") }, "state.db state.db.other-format", "its version is 4, and this weft has version 6"},
		"later":   {func(t *testing.T, dir string) { putVersion(t, dir, "7") }, "state.db state.db.other-format", "its version is 7, and this weft has version 6"},
		"outdated": {func(t *testing.T, dir string) {
			putVersion(t, dir, "4")
			must(t, os.Rename(filepath.Join(dir, databaseName), filepath.Join(dir, outdatedName)))
		}, "state.db state.db.outdated.other-format", "its version is 4"},
		// The version is the second word of both copies of bbolt's meta data.
		"bbolt": {func(t *testing.T, dir string) {
			path := filepath.Join(dir, databaseName)
			b, err := os.ReadFile(path)
			must(t, err)
			b[16+4], b[os.Getpagesize()+16+4] = 3, 3
			must(t, os.WriteFile(path, b, 0o600))
		}, "state.db state.db.other-format", "version mismatch"},
		// Another version ran since: its files and those of this version go together.
		"all files": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "weft.db"), []byte("record"), 0o600))
			must(t, os.WriteFile(filepath.Join(dir, "history.db"), []byte("history"), 0o600))
			must(t, os.Mkdir(filepath.Join(dir, "unconfirmed"), 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "unconfirmed", "x.json"), []byte("{}"), 0o600))
		}, "history.db.other-format state.db state.db.other-format unconfirmed.other-format unconfirmed.other-format/x.json weft.db.other-format", "unconfirmed.other-format"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			filled(t, dir)
			test.change(t, dir)
			w := watch(dir)
			must(t, w.Load())
			defer func() { _ = w.Close() }()
			if got := files(t, dir); got != test.files {
				t.Errorf("files %q, want %q", got, test.files)
			}
			if log := w.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, test.log) || !strings.Contains(log, "apply them again") {
				t.Errorf("log %s", log)
			}
			if got := w.dump(t); got != "" || w.failed["whole"] != 1 || w.failed["single"] != 1 {
				t.Errorf("content %q, failures %v", got, w.failed)
			}
			must(t, w.put("whole", "a=1"))
		})
	}
}
