package compile

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestValue compares the 128-bit arithmetic with that of math/big.
func TestValue(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	toBig := func(v value) *big.Int {
		b := new(big.Int).SetUint64(v.hi)
		return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(v.lo))
	}
	all := toBig(valueMask(128))
	for range 2000 {
		a, b := value{rnd.Uint64(), rnd.Uint64()}, value{rnd.Uint64() >> rnd.UintN(64), rnd.Uint64()}
		n := uint32(rnd.UintN(128))
		x, y := toBig(a), toBig(b)
		for _, op := range []struct {
			name string
			got  value
			want *big.Int
		}{
			{"and", a.and(b), new(big.Int).And(x, y)},
			{"or", a.or(b), new(big.Int).Or(x, y)},
			{"xor", a.xor(b), new(big.Int).Xor(x, y)},
			{"not", a.not(), new(big.Int).Xor(x, all)},
			{"shl", a.shl(n), new(big.Int).And(new(big.Int).Lsh(x, uint(n)), all)},
		} {
			if toBig(op.got).Cmp(op.want) != 0 {
				t.Fatalf("%s of %x, %x, %d: %x: want %x", op.name, x, y, n, op.got, op.want)
			}
		}
		if a.cmp(b) != x.Cmp(y) || a.cmp(a) != 0 {
			t.Fatalf("cmp of %x, %x: %d", x, y, a.cmp(b))
		}
	}
}
