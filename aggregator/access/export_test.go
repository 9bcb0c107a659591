package access

// ReadFile reads and parses a file.
//
// Possible errors: a *FileError, the file system's.
func ReadFile(path string, lookup Lookup) (*Policy, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, lookup)
}
