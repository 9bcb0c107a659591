package aggregator

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// TestSealTellsEveryDamage flips every bit of a file, and cuts it at every byte.
func TestSealTellsEveryDamage(t *testing.T) {
	whole := recordSeal.add([]byte(`{"version":2,"desired":{}}`))
	if b, err := recordSeal.remove(whole); err != nil || string(b) != `{"version":2,"desired":{}}` {
		t.Fatalf("remove: %q, %v", b, err)
	}
	for n := range whole {
		if b, err := recordSeal.remove(whole[:n]); err == nil {
			t.Fatalf("cut after %d bytes: read as %q", n, b)
		}
		for bit := range 8 {
			damaged := bytes.Clone(whole)
			damaged[n] ^= 1 << bit
			if b, err := recordSeal.remove(damaged); err == nil && !bytes.EqualFold(damaged, whole) {
				t.Fatalf("bit %d of byte %d flipped: read as %q", bit, n, b)
			}
		}
	}
	if _, err := durableSeal.remove(whole); !errors.Is(err, errUnsealed) {
		t.Fatalf("file of another kind: %v", err)
	}
	if _, err := (seal{recordSeal.kind, recordSeal.version + 1}).remove(whole); err == nil || err.Error() != "version 2: want 3" {
		t.Fatalf("file of another version: %v", err)
	}
}

// TestReplaceFileLeavesNothing replaces what can not be replaced.
func TestReplaceFileLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "busy", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(filepath.Join(dir, "busy"), []byte("x")); err == nil {
		t.Fatal("a directory was replaced by a file")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("entries %v, error %v: want the directory alone", entries, err)
	}
}

// TestSweepTemporary spares fragments whose names look like temporary files.
func TestSweepTemporary(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.pb", "a.pb.tmp-123", "b.tmp-1.pb", "c.tmp-x"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "d.tmp-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if left := sweepTemporary(dir, entries); len(left) != 4 {
		t.Fatalf("left %v: want all but a.pb.tmp-123", left)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.pb.tmp-123")); !os.IsNotExist(err) {
		t.Fatalf("a.pb.tmp-123 is still there: %v", err)
	}
}

// TestSetAsideIsBounded keeps a few damaged files, and says when there are too
// many.
func TestSetAsideIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	for i := range maxAside + 1 {
		if err := os.WriteFile(path, []byte{byte(i)}, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := setAside(path); (err == nil) != (i < maxAside) {
			t.Fatalf("file %d: %v", i, err)
		}
	}
	if b, err := os.ReadFile(path + ".damaged"); err != nil || !bytes.Equal(b, []byte{0}) {
		t.Fatalf("the first one set aside is %v, %v", b, err)
	}
}

// FuzzRecordFile feeds whatever may be found in the place of the record, sealed
// or not: no panic, an error or a record that can be adopted, by a kernel that has
// nothing.
func FuzzRecordFile(f *testing.F) {
	text := []byte(`{"version":2,"revision":7,"books":[{"publisher":"p","name":"f","lifetime":"LIFETIME_DURABLE"}],"desired":{"fragments":[
{"publisher":"p","name":"f","priority":-1,"tables":[{"family":"ip","name":"t","chains":[{"name":"c","sets":["s"],"chains":["d"]}],"sets":[{"name":"s","conntrack":true}]}]}]}}`)
	f.Add(text, true)
	f.Add(recordSeal.add(text), false)
	f.Add([]byte("weft-record 2 sha256:\n"), false)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			b = recordSeal.add(b)
		}
		payload, err := recordSeal.remove(b)
		if err != nil {
			return
		}
		r, err := parseRecord(payload)
		if err != nil {
			return
		}
		state := desired.New()
		state.Adopt(nil, r.Desired)
		newStatuses().adopt(state, r.Revision, time.Unix(0, 0))
		if plan := state.Plan(); len(plan.Ops) > 0 {
			t.Fatalf("adopting a record alone plans %v", plan.Ops)
		}
	})
}

// FuzzFragmentFile feeds whatever may be found in the place of a durable
// fragment: no panic, and an update or a rejection.
func FuzzFragmentFile(f *testing.F) {
	key := desired.Key{Publisher: "p", Name: "f"}
	for _, m := range []*weftv1.Fragment{
		{Name: "f", Nft: "table ip t { chain c { drop; }; }"},
		{Name: "f", Lifetime: weftv1.Lifetime_LIFETIME_DURABLE, Tables: []*weftv1.Table{{Family: "ip", Name: "t",
			Sets: []*weftv1.Set{{Name: "s", Type: "ipv4_addr", Elements: []*weftv1.Element{{Key: "10.0.0.1"}}}}}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, true)
		f.Add(durableSeal.add(b), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		if sealed {
			b = durableSeal.add(b)
		}
		payload, err := durableSeal.remove(b)
		if err != nil {
			return
		}
		m, err := parseFragment(payload, key)
		if err != nil {
			return
		}
		adm := admission.NewSnapshot(admission.Config{Durable: true}, key, desired.New().Scope())
		adm.AddFragment(m)
		if u, err := adm.Finish(); (u == nil) == (err == nil) {
			t.Fatalf("update %v, error %v", u, err)
		}
	})
}
