package desired

// HasUnclaimed reports whether DropUnclaimed would remove anything: an object, or a part
// of one, that was in the kernel at Adopt and that no fragment is known for.
func (s *State) HasUnclaimed() bool {
	for _, h := range s.unclaimed.tables {
		if len(h.shares) == 0 {
			return true
		}
		for id, sh := range h.shares {
			sh, ok := sh.(*setShare)
			if !ok || !sh.waiting && (!sh.passive || len(h.table.parts[id].fragments()) == 1) {
				return true
			}
		}
	}
	return false
}

// DropUnclaimed gives up all content without a fragment. It counts as a
// change like an Apply.
//
// Possible errors: *[Rejection], when a fragment refers to some of it.
func (s *State) DropUnclaimed() error {
	return s.change(Key{}, func(a *apply) {
		a.f = s.unclaimed
		for _, h := range s.unclaimed.holdings() {
			for id, sh := range h.shares {
				if sh, ok := sh.(*setShare); !ok || !sh.waiting {
					a.giveUp(h, id)
				}
			}
			a.releaseUnclaimed(h.table)
		}
	})
}
