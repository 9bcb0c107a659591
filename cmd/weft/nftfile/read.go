package nftfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxSize is more than the aggregator accepts. It keeps a wrong path, such as a
// device, from filling the memory.
const maxSize = 64 << 20

// Read returns the text of a file; "-" is stdin. A file of more than 64 MiB, or that is not
// text in UTF-8, is an error.
func Read(stdin io.Reader, path string) (string, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("read fragment: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	if err != nil {
		return "", fmt.Errorf("read fragment: %w", err)
	}
	if len(b) > maxSize {
		return "", fmt.Errorf("read fragment: %s is larger than %d MiB", path, maxSize>>20)
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", fmt.Errorf("read fragment: %s is not a text file", path)
	}
	return string(b), nil
}

// Paths returns the files that the arguments name. A directory stands for its .nft files,
// sorted by name, without those of its subdirectories. It is an error if a file does not
// exist, or if a directory has no .nft file.
func Paths(args []string) ([]string, error) {
	var paths []string
	for _, arg := range args {
		if arg == "-" {
			paths = append(paths, arg)
			continue
		}
		info, err := os.Stat(arg)
		if err != nil {
			return nil, fmt.Errorf("read fragment: %w", err)
		}
		if !info.IsDir() {
			paths = append(paths, arg)
			continue
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, fmt.Errorf("read fragments: %w", err)
		}
		n := len(paths)
		for _, e := range entries {
			if !e.IsDir() && strings.HasSuffix(e.Name(), ".nft") {
				paths = append(paths, filepath.Join(arg, e.Name()))
			}
		}
		if len(paths) == n {
			return nil, fmt.Errorf("read fragments: directory %s has no .nft files", arg)
		}
	}
	return paths, nil
}

// FragmentName returns the name of the fragment that a file becomes: explicit if it is not
// empty, otherwise the file's name without .nft, or "" for "-".
func FragmentName(explicit, path string) string {
	if explicit != "" || path == "-" {
		return explicit
	}
	return strings.TrimSuffix(filepath.Base(path), ".nft")
}
