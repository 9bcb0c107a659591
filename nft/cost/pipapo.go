package cost

import "github.com/weft-proxy/weft/nft/set"

// Lookup tables of concatenated ranges (net/netfilter/nft_set_pipapo.c): a bucket for each value of
// each group of bits, with a bit for each rule, a prefix of an element. Groups have eight bits
// until the table is too large, then four.
const (
	// NFT_PIPAPO_LT_SIZE_HIGH
	tableLarge             = 1 << 21
	wordRules, bucketBytes = 64, 8
	// union nft_pipapo_map_bucket
	mappingSize = 8
)

func words(rules int) int { return (rules + wordRules - 1) / wordRules }

func groups(length, rules int) int {
	if 256*length*bucketBytes*words(rules) <= tableLarge {
		return length
	}
	return 2 * length
}

func tableOf(length, rules int) (buckets, bytes int) {
	if buckets = 256 * length; groups(length, rules) > length {
		buckets = 2 * 16 * length
	}
	return buckets, buckets * bucketBytes * words(rules)
}

func (c *Content) rulesOf(field int) int {
	if field >= len(c.rules) {
		return 0
	}
	return c.rules[field]
}

func (c *Content) tables(d *set.Set) (n int) {
	for i, length := range d.Key.Fields {
		_, bytes := tableOf(int(length), c.rulesOf(i))
		n += bytes + mappingSize*c.rulesOf(i)
	}
	return n
}

// overlaps counts the elements of concatenated ranges by the longest common prefix of the ends of
// their first field. A packet or a new element pays for each element with a matching first field
// (pipapo_refill).
type overlaps struct {
	byPrefix map[string]int
	tally    map[tally]int
}

type tally struct{ length, elements int }

func (o *overlaps) add(low, high string, by int) {
	if o.byPrefix == nil {
		o.byPrefix, o.tally = map[string]int{}, map[tally]int{}
	}
	length := 0
	for length < 8*len(low) && bitOf(low, length) == bitOf(high, length) {
		length++
	}
	prefix := []byte(low[:(length+7)/8])
	if length%8 != 0 {
		prefix[length/8] &^= 1<<(8-length%8) - 1
	}
	key := string(append(prefix, byte(length)))
	n := o.byPrefix[key]
	count := func(n, by int) {
		if at := (tally{length, n}); o.tally[at]+by == 0 || n == 0 {
			delete(o.tally, at)
		} else {
			o.tally[at] += by
		}
	}
	count(n, -1)
	count(n+by, 1)
	if o.byPrefix[key] = n + by; n+by == 0 {
		delete(o.byPrefix, key)
	}
}

func (o *overlaps) most() (sum int) {
	longest := map[int]int{}
	for t := range o.tally {
		longest[t.length] = max(longest[t.length], t.elements)
	}
	for _, n := range longest {
		sum += n
	}
	return sum
}
