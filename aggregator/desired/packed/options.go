package packed

import (
	"maps"
	"slices"
	"time"

	nftset "github.com/weft-proxy/weft/nft/set"
)

type options struct {
	timeout time.Duration
	comment string
	state   string
}

func optionsOf(e *nftset.Element) options {
	return options{timeout: e.Timeout, comment: e.Comment, state: e.State}
}

// extras has options by row. The zero value is ready for use.
type extras struct {
	// pages have rowsPerChunk rows each; n counts rows with options.
	pages []map[int]options
	n     int
	// shared pages are in a view: copy them before a change.
	shared []bool
}

func (x *extras) get(i int) options {
	if page := i / rowsPerChunk; page < len(x.pages) {
		return x.pages[page][i]
	}
	return options{}
}

func (x *extras) set(i int, o options) {
	before := x.get(i)
	if before == o {
		return
	}
	page := i / rowsPerChunk
	if missing := page + 1 - len(x.pages); missing > 0 {
		x.pages = append(x.pages, make([]map[int]options, missing)...)
	}
	if page < len(x.shared) && x.shared[page] {
		x.pages[page], x.shared[page] = maps.Clone(x.pages[page]), false
	}
	if o == (options{}) {
		x.n--
		delete(x.pages[page], i)
	} else {
		if before == (options{}) {
			x.n++
		}
		if x.pages[page] == nil {
			x.pages[page] = map[int]options{}
		}
		x.pages[page][i] = o
	}
	if x.n == 0 {
		x.pages, x.shared = nil, nil
	}
}

// share returns the present options for views.
func (x *extras) share() extras {
	x.shared = slices.Repeat([]bool{true}, len(x.pages))
	return extras{pages: slices.Clone(x.pages), n: x.n}
}
