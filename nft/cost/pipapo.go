package cost

import "github.com/weft-proxy/weft/nft/set"

// The lookup tables of concatenated ranges (net/netfilter/nft_set_pipapo.c). A field has a table
// with a bucket for each value of each group of its bits, and a bucket a bit for each rule: a
// prefix of an element. Groups have eight bits until the table is too large, then four.
const (
	// tableLarge is the size of a table from which its groups have four bits
	// (NFT_PIPAPO_LT_SIZE_HIGH in net/netfilter/nft_set_pipapo.h).
	tableLarge = 1 << 21
	// wordRules is how many rules a word of a bucket has, and bucketBytes the bytes of the word.
	wordRules, bucketBytes = 64, 8
	// mappingSize is what a rule takes beside the table (union nft_pipapo_map_bucket).
	mappingSize = 8
)

// words returns the words of a bucket for a number of rules.
func words(rules int) int { return (rules + wordRules - 1) / wordRules }

// groups returns the number of groups of a field with a length in bytes.
func groups(length, rules int) int {
	if 256*length*bucketBytes*words(rules) <= tableLarge {
		return length
	}
	return 2 * length
}

// tableOf returns the number of buckets of a field, and the bytes of its table.
func tableOf(length, rules int) (buckets, bytes int) {
	if buckets = 256 * length; groups(length, rules) > length {
		buckets = 2 * 16 * length
	}
	return buckets, buckets * bucketBytes * words(rules)
}

// rulesOf returns the number of rules of a field.
func (c *Content) rulesOf(field int) int {
	if field >= len(c.rules) {
		return 0
	}
	return c.rules[field]
}

// tables returns the bytes of all tables, with what each rule takes beside them.
func (c *Content) tables(d *set.Set) (n int) {
	for i, length := range d.Key.Fields {
		_, bytes := tableOf(int(length), c.rulesOf(i))
		n += bytes + mappingSize*c.rulesOf(i)
	}
	return n
}

// overlaps counts the elements of concatenated ranges by the longest prefix that both ends of
// their first field have in common. A packet, and an element that is added, pays for each element
// whose first field it matches (pipapo_refill), and these have prefixes of its value.
type overlaps struct {
	byPrefix map[string]int
	// tally counts, for each length of a prefix, the prefixes by their number of elements.
	tally map[tally]int
}

type tally struct{ length, elements int }

// add counts an element by times.
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

// most returns how many elements one value matches at most.
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
