package aggregator

import (
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
)

// Admit compiles and packs a snapshot as Push does, and returns what does the same
// to patches of the fragment.
func Admit(key desired.Key, f *weftv1.Fragment) (*desired.Update, func(*weftv1.Patch) (*desired.Update, error), error) {
	outer := mergedScope{desired.New().Scope()}
	adm := newAdmission(key, true, nil, outer, false)
	adm.addFragment(f, true)
	u, err := adm.finish()
	if err != nil {
		return nil, nil, err
	}
	own, _ := adm.own.after(adm)
	return u, func(p *weftv1.Patch) (*desired.Update, error) {
		adm := newAdmission(key, false, own, outer, false)
		adm.addPatch(p)
		return adm.finish()
	}, nil
}

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
