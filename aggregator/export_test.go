package aggregator

import (
	"github.com/weft-proxy/weft/aggregator/desired"
)

// SealRecord and SealFragment return the files of a record and of a stored
// fragment, for tests that write them.
func SealRecord(text string) []byte { return recordSeal.add([]byte(text)) }

// SealFragment is SealRecord for a fragment.
func SealFragment(b []byte) []byte { return durableSeal.add(b) }

// SaveRecord writes the record of a state as the writer does before a commit that
// changes declarations.
func SaveRecord(dir string, s *desired.State) error {
	return newStore(dir).save(record{Desired: s.Record()})
}
