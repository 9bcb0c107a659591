package nftfile

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxSize is above the aggregator's limit. It bounds memory for a wrong path, such as a device.
const maxSize = 64 << 20

// Read returns the text of a file; "-" is stdin. The limit is 64 MiB of UTF-8.
func Read(stdin io.Reader, path string) (string, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxSize+1))
	if err != nil {
		return "", err
	}
	if len(b) > maxSize {
		return "", fmt.Errorf("%s is larger than %d MiB", path, maxSize>>20)
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", fmt.Errorf("%s is not a text file", path)
	}
	return string(b), nil
}

// Paths returns the files of the arguments: of a directory its .nft files, sorted by name. A
// missing file, or a directory without .nft files, is an error.
func Paths(args []string, recursive bool) ([]string, error) {
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
		in, err := filesIn(arg, recursive)
		if err != nil {
			return nil, fmt.Errorf("read fragments: %w", err)
		}
		if len(in) == 0 {
			return nil, fmt.Errorf("read fragments: directory %s has no .nft files", arg)
		}
		paths = append(paths, in...)
	}
	return paths, nil
}

func filesIn(dir string, recursive bool) (paths []string, _ error) {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != dir && !recursive:
			return fs.SkipDir
		case !e.IsDir() && strings.HasSuffix(e.Name(), ".nft"):
			paths = append(paths, path)
		}
		return nil
	})
	return paths, err
}

// FragmentName returns explicit, or the file's name without .nft, or "" for "-".
func FragmentName(explicit, path string) string {
	if explicit != "" || path == "-" {
		return explicit
	}
	return strings.TrimSuffix(filepath.Base(path), ".nft")
}
