package statedir

import (
	"testing"

	"google.golang.org/protobuf/proto"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/entries"
)

// FuzzEntry reads arbitrary entries of a fragment: no panic.
func FuzzEntry(f *testing.F) {
	for _, e := range entries.Of(fragment("f", 2)) {
		b, err := proto.Marshal(e.Value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e.Key, b)
	}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		m := &weftv1.Fragment{}
		_ = entries.Add(m, "ip demo set a", []byte{})
		_ = entries.Add(m, key, value)
		_ = entries.Add(m, "ip demo set a 10.0.0.1", nil)
	})
}
