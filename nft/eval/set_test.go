package eval_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weft-proxy/weft/nft/eval"
	"github.com/weft-proxy/weft/nft/set"
)

// TestFind compares the index with a search of all elements, for keys in and around them.
func TestFind(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, fields := range [][]uint32{nil, {4, 2}, {4, 4, 1}} {
		decl := &set.Set{Name: "s", Key: set.Type{Len: 4, Fields: fields}}
		parts := fields
		if parts == nil {
			parts = []uint32{4}
		}
		elements := randomElements(random, parts)
		found := 0
		x := eval.NewSet(decl, elements)
		for range 20000 {
			key := randomKey(random, parts)
			want, exists := linear(elements, parts, key)
			got, ok, err := x.Elements.Find(key)
			if err != nil || ok != exists || got != want {
				t.Fatalf("fields %v, key %x: %+v, %t, %v; want %+v, %t", fields, key, got, ok, err, want, exists)
			}
			if ok && got.Key != "" {
				found++
			}
		}
		if found < 100 {
			t.Errorf("fields %v: %d keys are found: want at least 100", fields, found)
		}
	}
}

// randomKey returns a key of few different values in each part.
func randomKey(random *rand.Rand, parts []uint32) string {
	key := ""
	for _, n := range parts {
		b := make([]byte, (n+3)&^3)
		b[n-1] = byte(random.IntN(64))
		key += string(b)
	}
	return key
}

// randomElements returns elements with single values and ranges that do not overlap, and one
// for all other keys.
func randomElements(random *rand.Rand, parts []uint32) []set.Element {
	elements := []set.Element{{Comment: "all others"}}
	for i := range 400 {
		e := set.Element{Key: randomKey(random, parts), Comment: fmt.Sprint(i)}
		if random.IntN(2) == 0 {
			e.KeyEnd = widened(random, e.Key, parts)
		}
		free := true
		for _, o := range elements[1:] {
			free = free && !overlap(e, o, parts)
		}
		if free {
			elements = append(elements, e)
		}
	}
	return elements
}

// widened returns the end of an element that begins at key.
func widened(random *rand.Rand, key string, parts []uint32) string {
	end, at := []byte(key), 0
	for _, n := range parts {
		end[at+int(n)-1] += byte(random.IntN(4))
		at += int(n+3) &^ 3
	}
	return string(end)
}

func end(e set.Element) string {
	if e.KeyEnd == "" {
		return e.Key
	}
	return e.KeyEnd
}

func overlap(a, b set.Element, parts []uint32) bool {
	at := 0
	for _, n := range parts {
		to := at + int(n)
		if a.Key[at:to] > end(b)[at:to] || b.Key[at:to] > end(a)[at:to] {
			return false
		}
		at += int(n+3) &^ 3
	}
	return true
}

// linear finds a key by comparing it with all elements.
func linear(elements []set.Element, parts []uint32, key string) (set.Element, bool) {
	for _, e := range elements[1:] {
		if overlap(set.Element{Key: key}, e, parts) {
			return e, true
		}
	}
	return elements[0], true
}
