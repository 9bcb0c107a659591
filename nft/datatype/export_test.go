package datatype

// Names returns the names that Lookup knows, in order of their numbers.
func Names() []string {
	names := make([]string, len(declarable))
	for i, t := range declarable {
		names[i] = t.Name
	}
	return names
}
