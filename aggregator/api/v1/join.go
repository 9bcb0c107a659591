package weftv1

// Join appends a part of a streamed answer to the parts before, or to an empty message. The part
// must not be used afterwards.
func (r *GetFragmentResponse) Join(part *GetFragmentResponse) {
	if r.Fragment == nil {
		r.Status, r.Fragment = part.Status, part.Fragment
		return
	}
	r.Fragment.join(part.GetFragment())
}

// Join is like Join of GetFragmentResponse.
func (r *CompareRevisionsResponse) Join(part *CompareRevisionsResponse) {
	r.Fragments = join(r.Fragments, part.Fragments, func(last, next *FragmentComparison) bool {
		if last.Fragment.Text() != next.Fragment.Text() {
			return false
		}
		for _, c := range []struct {
			whole **Fragment
			part  *Fragment
		}{{&last.From, next.From}, {&last.To, next.To}} {
			if *c.whole == nil {
				*c.whole = c.part
			} else {
				(*c.whole).join(c.part)
			}
		}
		return true
	})
}

func (f *Fragment) join(part *Fragment) {
	f.Tables = join(f.Tables, part.GetTables(), func(last, next *Table) bool {
		if last.Family != next.Family || last.Name != next.Name {
			return false
		}
		last.Objects = append(last.Objects, next.Objects...)
		last.Flowtables = append(last.Flowtables, next.Flowtables...)
		last.Sets, last.Maps = join(last.Sets, next.Sets, (*Set).join), join(last.Maps, next.Maps, (*Set).join)
		last.Chains = join(last.Chains, next.Chains, func(last, next *Chain) bool {
			return last.Name == next.Name && extend(&last.Rules, next.Rules)
		})
		return true
	})
}

// Join is like Join of GetFragmentResponse.
func (r *GetTableResponse) Join(part *GetTableResponse) {
	if r.Revision == 0 {
		r.Revision, r.Status = part.Revision, part.Status
	}
	r.Objects = append(r.Objects, part.Objects...)
	r.Flowtables = append(r.Flowtables, part.Flowtables...)
	r.Chains = join(r.Chains, part.Chains, func(last, next *MergedChain) bool {
		return last.Chain.Name == next.Chain.Name && extend(&last.Rules, next.Rules)
	})
	r.Sets = join(r.Sets, part.Sets, func(last, next *MergedSet) bool {
		return last.Set.join(next.Set) && extend(&last.Added, next.Added)
	})
}

// join appends a list to another. It calls absorb with the last entry before and the next entry. If
// absorb returns true, the next entry is left out.
func join[T any](whole, part []T, absorb func(last, next T) bool) []T {
	for _, next := range part {
		if n := len(whole); n == 0 || !absorb(whole[n-1], next) {
			whole = append(whole, next)
		}
	}
	return whole
}

// join returns false for a set of another name.
func (s *Set) join(next *Set) bool {
	return s.Name == next.Name && extend(&s.Elements, next.Elements)
}

// extend returns true.
func extend[T any](list *[]T, more []T) bool {
	*list = append(*list, more...)
	return true
}
