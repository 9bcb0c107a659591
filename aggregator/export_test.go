package aggregator

// SealRecord and SealFragment return the files of a record and of a stored
// fragment, for tests that write them.
func SealRecord(text string) []byte { return recordSeal.add([]byte(text)) }

// SealFragment is SealRecord for a fragment.
func SealFragment(b []byte) []byte { return durableSeal.add(b) }
