package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string
	path string // the content
	mode int64
}

func writeArchive(src *source, arch, binary, out string) (err error) {
	f, err := os.Create(filepath.Join(out, src.artifact(arch, ".tar.gz")))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	dir := src.artifact(arch, "/")
	err = writeTar(z, src.time, []entry{
		{dir + "LICENSE", filepath.Join(src.dir, "LICENSE"), 0o644},
		{dir + "README.md", filepath.Join(src.dir, "README.md"), 0o644},
		{dir + "weft", binary, 0o755},
	})
	return errors.Join(err, z.Close())
}

// writeTar writes entries in their order. They belong to root and have the same time.
func writeTar(w io.Writer, at time.Time, entries []entry) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		data, err := os.ReadFile(e.path)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(data)), ModTime: at, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	return t.Close()
}

// filesBelow lists the regular files below dir, sorted, by their paths in it.
func filesBelow(dir string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		entries = append(entries, entry{name, path, 0o644})
		return err
	})
	return entries, err
}
