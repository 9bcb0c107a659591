package weftv1

// CountPacked returns the number of elements, as the messages state them.
func CountPacked(list []*PackedElements) (n int) {
	for _, p := range list {
		n += int(p.GetCount())
	}
	return n
}
