package admission

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/convert"
	"github.com/weft-proxy/weft/nft"
	"github.com/weft-proxy/weft/nft/set"
)

// chunk is a run of elements of one set, packed by one goroutine.
type chunk struct {
	table nft.TableID
	decl  *set.Set
	out   []set.Element
	bad   violations
}

// inlineElements is the number of elements up to which packing them at once is
// cheaper than starting a goroutine.
const inlineElements = 256

// pool runs functions in at most GOMAXPROCS goroutines.
type pool struct {
	// slots has room for the running goroutines. It is made for the first one.
	slots chan struct{}
	wg    sync.WaitGroup
	// panicked is the first panic of a goroutine.
	panicked atomic.Pointer[any]
}

// run calls f, which packs n elements: at once if they are few, else in a
// goroutine.
func (p *pool) run(n int, f func()) {
	if n <= inlineElements {
		f()
		return
	}
	p.spawn(f)
}

// spawn calls f in a goroutine as soon as one may start.
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

// wait waits for all goroutines. It raises a panic of one of them again, on the
// goroutine of the request, where the server handles it.
func (p *pool) wait() {
	p.wg.Wait()
	if v := p.panicked.Load(); v != nil {
		panic(*v)
	}
}

// packMessages packs the elements of a message.
func (b *Builder) packMessages(t nft.TableID, decl *set.Set, elements []*weftv1.Element) *chunk {
	return packAll(b, t, decl, elements, convert.ElementOf)
}

// packElements packs the elements of an nft file.
func (b *Builder) packElements(t nft.TableID, decl *set.Set, elements []nft.Element) *chunk {
	return packAll(b, t, decl, elements, func(e nft.Element) nft.Element { return e })
}

// packAll packs elements after turning each into an nft.Element.
func packAll[T any](b *Builder, t nft.TableID, decl *set.Set, elements []T, of func(T) nft.Element) *chunk {
	c := &chunk{table: t, decl: decl}
	b.pool.run(len(elements), func() {
		c.out = make([]set.Element, 0, len(elements))
		p := decl.Packer(len(elements))
		for _, e := range elements {
			if !c.pack(p, of(e)) {
				return
			}
		}
	})
	return c
}

// packKeys packs the keys of elements to remove.
func (b *Builder) packKeys(t nft.TableID, decl *set.Set, keys []string) *chunk {
	c := &chunk{table: t, decl: decl}
	b.pool.run(len(keys), func() {
		c.out = make([]set.Element, 0, len(keys))
		for _, k := range keys {
			if !c.packKey(k) {
				return
			}
		}
	})
	return c
}

// pack appends one element. It returns false once the chunk has as many
// violations as are reported.
func (c *chunk) pack(p *set.Packer, e nft.Element) bool {
	if len(e.Key) > MaxElementText || len(e.Value) > MaxElementText {
		return c.tooLong(e.Key)
	}
	if e.Timeout < 0 {
		c.bad.add(weftv1.Violation_REASON_INVALID, c.object(e.Key), fmt.Sprintf("timeout %v is negative", e.Timeout))
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

// packKey is pack for the key of an element to remove.
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
	c.bad.add(weftv1.Violation_REASON_LIMIT, c.object(key), fmt.Sprintf("text is longer than %d bytes", MaxElementText))
	return !c.bad.full()
}

func (c *chunk) object(key string) *weftv1.ObjectName {
	return ElementName(c.table, c.decl.Name, Clip(key))
}

// SetKind returns the nft keyword for a set or map.
func SetKind(isMap bool) string {
	if isMap {
		return "map"
	}
	return "set"
}
