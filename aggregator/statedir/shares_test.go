package statedir

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/aggregator/store"
)

// apartOf returns a record with a table whose changed shares, sets, are apart from it.
func apartOf(whole bool, shares map[string]*desired.TableRecord) Record {
	t := desired.TableRecord{Family: "ip", Name: "t", Comment: "hello", Apart: true, Whole: whole, Shares: shares}
	return Record{Desired: desired.Record{Fragments: []desired.FragmentRecord{
		{Publisher: "p", Name: "f", Lifetime: "sticky", Tables: []desired.TableRecord{t}}, {Publisher: "q", Name: "g"}}}}
}

func shareOf(name string) *desired.TableRecord {
	return &desired.TableRecord{Sets: []desired.SetRecord{{Name: name}}}
}

// TestShares stores the shares of a table apart from the record, and changes of them.
func TestShares(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	d, _ := load(t, dir)
	all := map[string]*desired.TableRecord{}
	for i := range 1000 {
		all[fmt.Sprintf("set s%03d", i)] = shareOf(fmt.Sprintf("s%03d", i))
	}
	must(t, d.SaveRecord(apartOf(true, all), 1))
	must(t, d.SaveRecord(apartOf(true, map[string]*desired.TableRecord{"set a": shareOf("a"), "set b": shareOf("b"), "set c": shareOf("c")}), 2))
	must(t, d.SaveRecord(apartOf(false, map[string]*desired.TableRecord{"set b": nil, "set c": {Sets: []desired.SetRecord{{Name: "c", Affinity: true}}}, "set gone": nil}), 3))
	must(t, d.SaveRecord(apartOf(false, nil), 4))
	want := apartOf(false, nil)
	table := &want.Desired.Fragments[0].Tables[0]
	table.Apart, table.Sets = false, []desired.SetRecord{{Name: "a"}, {Name: "c", Affinity: true}}
	for _, when := range []string{"after a start", "after another one"} {
		must(t, d.Close())
		var c *Contents
		if d, c = load(t, dir); !c.Trusted || !reflect.DeepEqual(c.Record, want) {
			t.Fatalf("%s: record %+v, want %+v", when, c.Record, want)
		}
	}
	must(t, d.SaveRecord(apartOf(true, all), 5))
	must(t, d.SaveRecord(Record{}, 6))
	must(t, d.store.View(func(tx *store.Tx) error {
		b, err := tx.Bucket(sharesBucket)
		if err == nil && len(b.Names()) > 0 {
			t.Errorf("the shares of %s are still there", b.Names())
		}
		return err
	}))
}

// TestSharesAreMissing loses all shares: the record is not trusted.
func TestSharesAreMissing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	d, _ := load(t, dir)
	must(t, d.SaveRecord(apartOf(true, map[string]*desired.TableRecord{"set a": shareOf("a"), "set c": shareOf("c")}), 1))
	must(t, d.store.Update(func(tx *store.Tx) error {
		b, err := tx.Bucket(sharesBucket)
		if err != nil {
			return err
		}
		return b.DeleteBucket("p/f ip t")
	}))
	must(t, d.Close())
	_, c := load(t, dir)
	if f := c.Record.Desired.Fragments; c.Trusted || len(f) != 2 || f[0].Lifetime != "sticky" || f[0].Tables != nil {
		t.Errorf("trusted %t, fragments %+v: want the names and lifetimes of fragments alone", c.Trusted, f)
	}
}
