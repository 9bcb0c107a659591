package weftv1

// Join appends a part of a streamed answer to the parts before it. The first part
// is joined to an empty message. The part must not be used afterwards.
func (r *GetFragmentResponse) Join(part *GetFragmentResponse) {
	if r.Fragment == nil {
		r.Status, r.Fragment = part.Status, part.Fragment
		return
	}
	for _, t := range part.GetFragment().GetTables() {
		last := len(r.Fragment.Tables) - 1
		if last < 0 || r.Fragment.Tables[last].Family != t.Family || r.Fragment.Tables[last].Name != t.Name {
			r.Fragment.Tables = append(r.Fragment.Tables, t)
			continue
		}
		whole := r.Fragment.Tables[last]
		whole.Objects = append(whole.Objects, t.Objects...)
		whole.Flowtables = append(whole.Flowtables, t.Flowtables...)
		whole.Sets = joinSets(whole.Sets, t.Sets)
		whole.Maps = joinSets(whole.Maps, t.Maps)
		for _, c := range t.Chains {
			if n := len(whole.Chains); n > 0 && whole.Chains[n-1].Name == c.Name {
				whole.Chains[n-1].Rules = append(whole.Chains[n-1].Rules, c.Rules...)
			} else {
				whole.Chains = append(whole.Chains, c)
			}
		}
	}
}

// joinSets appends sets. The first may continue the last one before.
func joinSets(whole, part []*Set) []*Set {
	for _, s := range part {
		if n := len(whole); n > 0 && whole[n-1].Name == s.Name {
			whole[n-1].Elements = append(whole[n-1].Elements, s.Elements...)
		} else {
			whole = append(whole, s)
		}
	}
	return whole
}

// Join is like Join of GetFragmentResponse.
func (r *GetTableResponse) Join(part *GetTableResponse) {
	if r.Revision == 0 {
		r.Revision, r.Status = part.Revision, part.Status
	}
	r.Objects = append(r.Objects, part.Objects...)
	r.Flowtables = append(r.Flowtables, part.Flowtables...)
	for _, c := range part.Chains {
		if n := len(r.Chains); n > 0 && r.Chains[n-1].Chain.Name == c.Chain.Name {
			r.Chains[n-1].Rules = append(r.Chains[n-1].Rules, c.Rules...)
		} else {
			r.Chains = append(r.Chains, c)
		}
	}
	for _, s := range part.Sets {
		if n := len(r.Sets); n > 0 && r.Sets[n-1].Set.Name == s.Set.Name {
			r.Sets[n-1].Set.Elements = append(r.Sets[n-1].Set.Elements, s.Set.Elements...)
			r.Sets[n-1].Added = append(r.Sets[n-1].Added, s.Added...)
		} else {
			r.Sets = append(r.Sets, s)
		}
	}
}
