package admission

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// chunk is a run of elements in the same set, packed by one goroutine.
type chunk struct {
	out []set.Element
	// expire_time in the past
	expired []set.Element
	bad     violations
}

// up to this number, packing on the spot is cheaper than a goroutine
const inlineElements = 256

type pool struct {
	// made for the first goroutine
	slots    chan struct{}
	wg       sync.WaitGroup
	panicked atomic.Pointer[any]
}

// run calls f on the spot, or in a goroutine for many elements.
func (p *pool) run(elements int, f func()) {
	if elements <= inlineElements {
		f()
	} else {
		p.spawn(f)
	}
}

func (p *pool) spawn(f func()) {
	if p.slots == nil {
		p.slots = make(chan struct{}, runtime.GOMAXPROCS(0))
	}
	p.slots <- struct{}{}
	p.wg.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				p.panicked.CompareAndSwap(nil, &v)
			}
			<-p.slots
		}()
		f()
	})
}

// wait raises a panic again where the server handles it.
func (p *pool) wait() {
	p.wg.Wait()
	if v := p.panicked.Load(); v != nil {
		panic(*v)
	}
}

var errExpired = errors.New("it has expired")

var errTooLong = fmt.Errorf("text is longer than %d bytes", MaxElementText)

// packer packs the elements of an update. Goroutines pack while the next message is decoded.
type packer struct {
	sender
	pool pool
}

func (p *packer) packMessages(t nft.TableID, decl *set.Set, elements []*weftv1.Element) *chunk {
	packer, publisher, now := decl.Packer(len(elements)), p.limited(), p.now()
	return p.pack(t, decl, len(elements), func(i int) (key string, out set.Element, err error) {
		if err := p.checkElement(elements[i]); err != nil {
			return elements[i].GetKey(), out, err
		}
		e := convert.ElementOf(elements[i])
		expired := false
		if at := elements[i].GetState().GetExpireTime(); at != nil {
			all := cmp.Or(e.Timeout, decl.Timeout)
			if at.CheckValid() != nil || all == 0 || e.Expires != 0 {
				return e.Key, out, errors.New("expire_time is for an element with a timeout and without expires")
			}
			// The clock can have been set back.
			e.Expires = min(at.AsTime().Sub(now).Truncate(time.Millisecond), all)
			if expired = e.Expires <= 0; expired {
				e.Expires = 0
			}
		}
		if e.Timeout > access.MaxTimeout && publisher.Limited() {
			err = publisher.Times(e.Timeout, 0)
		} else {
			out, err = packer.Pack(e)
		}
		if expired && err == nil {
			err = errExpired
		}
		return elements[i].GetKey(), out, err
	})
}

func (p *packer) packKeys(t nft.TableID, decl *set.Set, keys []string) *chunk {
	return p.pack(t, decl, len(keys), func(i int) (string, set.Element, error) {
		if len(keys[i]) > MaxElementText {
			return keys[i], set.Element{}, errTooLong
		}
		if err := p.checkText(keys[i]); err != nil {
			return keys[i], set.Element{}, err
		}
		out, err := decl.PackKey(keys[i])
		return keys[i], out, err
	})
}

func (p *packer) pack(t nft.TableID, decl *set.Set, n int, element func(i int) (key string, out set.Element, err error)) *chunk {
	c := &chunk{}
	p.pool.run(n, func() { c.fill(t, decl, n, element) })
	return c
}

func (p *packer) unpackElements(t nft.TableID, decl *set.Set, m *weftv1.PackedElements) *chunk {
	return p.unpack(t, decl, m.GetCount(), func() ([]set.Element, error) {
		return decl.Unpack(int(m.GetCount()), m.GetKeys(), m.GetValues())
	})
}

func (p *packer) unpack(t nft.TableID, decl *set.Set, n uint32, unpack func() ([]set.Element, error)) *chunk {
	c := &chunk{}
	p.pool.run(int(n), func() {
		var err error
		if c.out, err = unpack(); err != nil {
			c.bad.compile(setName(t, decl), err)
		}
	})
	return c
}

func (c *chunk) fill(t nft.TableID, decl *set.Set, n int, element func(i int) (key string, out set.Element, err error)) {
	c.out = make([]set.Element, 0, n)
	refusal := (*access.Refusal)(nil)
	for i := 0; i < n && !c.bad.full(); i++ {
		key, out, err := element(i)
		switch {
		case err == nil:
			c.out = append(c.out, out)
		case errors.Is(err, errExpired):
			c.expired = append(c.expired, out)
		case errors.As(err, &refusal):
			c.bad.refused(ElementName(t, decl.Name, Clip(key)), refusal)
		case errors.Is(err, errTooLong):
			c.bad.add(weftv1.Violation_REASON_LIMIT, ElementName(t, decl.Name, Clip(key)), err.Error())
		default:
			c.bad.compile(ElementName(t, decl.Name, Clip(key)), err)
		}
	}
}

// SetKind returns the nft keyword for a set or map.
func SetKind(isMap bool) string {
	if isMap {
		return "map"
	}
	return "set"
}
