package aggregator

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/compile"
)

// chunk is a run of elements of one set, packed by one goroutine.
type chunk struct {
	table nft.TableID
	decl  *compile.Set
	out   []compile.Element
	bad   violations
}

// inlineElements is the number of elements up to which packing them where they
// arrive is cheaper than a goroutine.
const inlineElements = 256

// packers runs the packing of chunks beside the decoding of messages.
type packers struct {
	// slots is made for the first goroutine.
	slots chan struct{}
	wg    sync.WaitGroup
	// panicked is the first panic of a goroutine.
	panicked atomic.Pointer[any]
}

// run calls f for a chunk of n elements, now or in a goroutine.
func (p *packers) run(n int, f func()) {
	if n <= inlineElements {
		f()
		return
	}
	p.spawn(f)
}

// spawn calls f in a goroutine, once there is a place for one.
func (p *packers) spawn(f func()) {
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

// wait waits for all chunks. A panic in one comes up again here, on the
// goroutine of the request, whose server knows what to do with it.
func (p *packers) wait() {
	p.wg.Wait()
	if v := p.panicked.Load(); v != nil {
		panic(*v)
	}
}

// packAdd packs elements of a message.
func (a *admission) packAdd(t nft.TableID, decl *compile.Set, elements []*weftv1.Element) *chunk {
	c := &chunk{table: t, decl: decl}
	a.pool.run(len(elements), func() {
		c.out = make([]compile.Element, 0, len(elements))
		p := decl.Packer(len(elements))
		for _, e := range elements {
			if !c.pack(p, elementOf(e)) {
				return
			}
		}
	})
	return c
}

// elementOf turns a message into an element in nft's words.
func elementOf(m *weftv1.Element) nft.Element {
	e := nft.Element{
		Key: m.GetKey(), Value: m.GetValue(), Comment: m.GetComment(), Timeout: time.Duration(m.GetTimeoutMs()) * time.Millisecond,
	}
	if s := m.GetState(); s != nil {
		e.Expires, e.Stateful = time.Duration(s.GetExpiresMs())*time.Millisecond, s.GetStateful()
	}
	return e
}

// elementMessage turns an element of a set into a message.
func elementMessage(d *compile.Set, e *compile.Element) *weftv1.Element {
	m := &weftv1.Element{Key: d.FormatKey(*e), Value: d.FormatData(*e), Comment: e.Comment, TimeoutMs: e.Timeout.Milliseconds()}
	if e.State != "" {
		m.State = &weftv1.ElementState{ExpiresMs: e.Expires().Milliseconds(), Stateful: e.Stateful()}
	}
	return m
}

// packFile packs elements of an nft file.
func (a *admission) packFile(t nft.TableID, decl *compile.Set, elements []nft.Element) *chunk {
	c := &chunk{table: t, decl: decl}
	a.pool.run(len(elements), func() {
		c.out = make([]compile.Element, 0, len(elements))
		p := decl.Packer(len(elements))
		for _, e := range elements {
			if !c.pack(p, e) {
				return
			}
		}
	})
	return c
}

// packKeys packs the keys of removals.
func (a *admission) packKeys(t nft.TableID, decl *compile.Set, keys []string) *chunk {
	c := &chunk{table: t, decl: decl}
	a.pool.run(len(keys), func() {
		c.out = make([]compile.Element, 0, len(keys))
		for _, k := range keys {
			if !c.packKey(k) {
				return
			}
		}
	})
	return c
}

// pack appends one element; false means that there are violations enough.
func (c *chunk) pack(p *compile.Packer, e nft.Element) bool {
	if len(e.Key) > MaxElementText || len(e.Value) > MaxElementText {
		return c.tooLong(e.Key)
	}
	if e.Timeout < 0 {
		c.bad.add(weftv1.Reason_REASON_INVALID, c.object(e.Key), fmt.Sprintf("timeout %v is negative", e.Timeout))
		return !c.bad.full()
	}
	out, err := p.Pack(e)
	if err != nil {
		c.bad.compile(c.object(e.Key), err)
		return !c.bad.full()
	}
	c.out = append(c.out, out)
	return true
}

// packKey appends one key; false means that there are violations enough.
func (c *chunk) packKey(key string) bool {
	if len(key) > MaxElementText {
		return c.tooLong(key)
	}
	out, err := c.decl.PackKey(key)
	if err != nil {
		c.bad.compile(c.object(key), err)
		return !c.bad.full()
	}
	c.out = append(c.out, out)
	return true
}

func (c *chunk) tooLong(key string) bool {
	c.bad.add(weftv1.Reason_REASON_LIMIT, c.object(key), fmt.Sprintf("text is longer than %d bytes", MaxElementText))
	return !c.bad.full()
}

func (c *chunk) object(key string) string {
	return fmt.Sprintf("table %s %s %s element %s", c.table, kind(c.decl.Map), c.decl.Name, clip(key))
}

// kind is nft's word for a set or map.
func kind(isMap bool) string {
	if isMap {
		return "map"
	}
	return "set"
}
