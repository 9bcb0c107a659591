package admission

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/kernel"
	"github.com/weft-proxy/weft/nft/object"
	"github.com/weft-proxy/weft/nft/set"
)

var weft = nft.TableID{Family: nft.FamilyIP, Name: "weft"}

// TestOpName names the object of each op of package kernel.
func TestOpName(t *testing.T) {
	s := &set.Set{Name: "s"}
	names := map[string]string{}
	for op, want := range map[kernel.Op]string{
		&kernel.AddTable{Table: weft}:                                                              "table ip weft",
		&kernel.DeleteTable{Table: weft}:                                                           "table ip weft",
		&kernel.AddChain{Table: weft, Chain: &object.Chain{Name: "c"}}:                             "chain ip weft c",
		&kernel.DeleteChain{Table: weft, Name: "c"}:                                                "chain ip weft c",
		&kernel.AddRule{Table: weft, Chain: "c"}:                                                   "rule ip weft c",
		&kernel.DeleteRule{Table: weft, Chain: "c", Handle: &kernel.Handle{N: 7}}:                  "rule ip weft c handle 7",
		&kernel.AddSet{Table: weft, Set: s}:                                                        "set ip weft s",
		&kernel.DeleteSet{Table: weft, Name: "s"}:                                                  "set ip weft s",
		&kernel.FlushSet{Table: weft, Name: "s"}:                                                   "set ip weft s",
		&kernel.AddElements{Table: weft, Set: s}:                                                   "set ip weft s",
		&kernel.DeleteElements{Table: weft, Set: s}:                                                "set ip weft s",
		&kernel.AddObject{Table: weft, Object: &object.Object{Kind: nft.ObjectCounter, Name: "o"}}: "counter ip weft o",
		&kernel.DeleteObject{Table: weft, Ref: object.Ref{Kind: nft.ObjectCounter, Name: "o"}}:     "counter ip weft o",
		&kernel.AddFlowtable{Table: weft, Flowtable: &object.Flowtable{Name: "f"}}:                 "flowtable ip weft f",
		&kernel.DeleteFlowtable{Table: weft, Name: "f"}:                                            "flowtable ip weft f",
	} {
		// The keys are pointers because some ops cannot be compared.
		v := reflect.ValueOf(op).Elem().Interface().(kernel.Op) //nolint:forcetypeassert // an op
		if got := OpName(v).Text(); got != want {
			t.Errorf("%T: %q, want %q", v, got, want)
		}
		names[reflect.TypeOf(v).Name()] = want
	}
	source, err := os.ReadFile("../../nft/kernel/op.go")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?m)^func \(o (\w+)\) table\(\)`).FindAllSubmatch(source, -1)
	if len(all) < 15 {
		t.Errorf("found only %d ops", len(all))
	}
	for _, m := range all {
		if names[string(m[1])] == "" {
			t.Errorf("the op %s is not tested", m[1])
		}
	}
	if OpName(nil) != nil {
		t.Error("no op has a name")
	}
}

func TestPlaceName(t *testing.T) {
	for want, p := range map[string]desired.Place{
		"":                              {},
		"table ip weft":                 {Table: weft},
		"ct helper ip weft ftp":         {Table: weft, Kind: "ct helper", Name: "ftp"},
		"rule ip weft input #3":         {Table: weft, Kind: "chain", Name: "input", Rule: 3},
		"element ip weft m { 1 . tcp }": {Table: weft, Kind: "map", Name: "m", Key: "1 . tcp"},
	} {
		if got := PlaceName(p).Text(); got != want {
			t.Errorf("%v: %q, want %q", p, got, want)
		}
	}
}

func TestCheckKey(t *testing.T) {
	for key, want := range map[desired.Key]string{
		{Publisher: "p", Name: "f-1.x_2"}:               "",
		{Publisher: "", Name: "f"}:                      "publisher name is empty",
		{Publisher: "p", Name: ""}:                      "fragment name is empty",
		{Publisher: "P", Name: "f"}:                     `publisher name "P": want only [a-z0-9._-]`,
		{Publisher: "p", Name: "-f"}:                    `fragment name "-f": want a letter or digit first`,
		{Publisher: "p", Name: strings.Repeat("f", 64)}: `fragment name "ffffffffffffffff"... has 64 bytes: at most 63 are allowed`,
	} {
		err := CheckKey(key)
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrInvalidName) || err.Error() != "invalid name: "+want) {
			t.Errorf("%q: error %v, want %s", key, err, want)
		}
	}
}
