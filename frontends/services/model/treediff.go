package model

// cursor is a position in a tree.
type cursor struct {
	// later are the subtrees after the position, for each height those beside the one
	// that was opened. The last element comes first.
	later [][]*tree
	// rest has the remaining entries of an opened leaf, which precede later.
	rest  string
	width int
	// root and room are the memory of later for a tree of the usual height.
	root [1]*tree
	room [6][]*tree
}

func (c *cursor) start(t *tree) {
	c.later = c.room[:0]
	if t != nil {
		c.root[0], c.width = t, int(t.width)
		c.later = append(c.later, c.root[:])
	}
}

// at returns the subtree that begins here. It is nil at the end and inside a leaf.
func (c *cursor) at() *tree {
	if c.rest != "" {
		return nil
	}
	for n := len(c.later); n > 0; n-- {
		if all := c.later[n-1]; len(all) > 0 {
			c.later = c.later[:n]
			return all[0]
		}
	}
	c.later = c.later[:0]
	return nil
}

// skip moves after the subtree that begins here.
func (c *cursor) skip() {
	last := len(c.later) - 1
	c.later[last] = c.later[last][1:]
}

// open moves into the subtree that begins here.
func (c *cursor) open(work *uint64) {
	t := c.at()
	c.skip()
	*work += uint64(t.fan())
	if t.children == nil {
		c.rest = t.packed
		return
	}
	c.later = append(c.later, t.kids())
}

// take returns the next entry of the opened leaf, and moves after it.
func (c *cursor) take() string {
	e := c.rest[:c.width]
	c.rest = c.rest[c.width:]
	return e
}

// diffTrees calls f for each entry that only one of two trees has, in order; came is true
// for those of now. If two entries differ only in their flags, that of was comes first.
// It stops when f returns false. Shared nodes are not looked at.
func diffTrees(was, now *tree, f func(packedEndpoint string, came bool) bool, work *uint64) {
	if was == now {
		*work++
		return
	}
	var x, y cursor
	x.start(was)
	y.start(now)
	for {
		p, q := x.at(), y.at()
		switch {
		case p != nil && p == q:
			*work++
			x.skip()
			y.skip()
		case p != nil && (q == nil || p.height >= q.height):
			x.open(work)
		case q != nil:
			y.open(work)
		case x.rest == "" && y.rest == "":
			return
		default:
			if !step(&x, &y, f) {
				return
			}
		}
	}
}

// step advances by one entry of either leaf, or of both if they are equal.
func step(x, y *cursor, f func(packedEndpoint string, came bool) bool) bool {
	switch {
	case y.rest == "":
		return f(x.take(), false)
	case x.rest == "":
		return f(y.take(), true)
	}
	a, b := x.rest[:x.width], y.rest[:y.width]
	key := x.width - 1
	switch {
	case a == b:
		x.take()
		y.take()
		return true
	case a[:key] <= b[:key]:
		return f(x.take(), false)
	default:
		return f(y.take(), true)
	}
}
