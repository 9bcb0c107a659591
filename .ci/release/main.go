// Command release builds the files of a release of weft from the current commit, and writes them to a
// directory:
//
//   - static binaries for linux, as archives and as Debian packages,
//   - a container image for all architectures, as an archive of an OCI layout,
//   - the modules of each binary, as SPDX documents,
//   - a statement of the source and the digests, in in-toto's form; it is not signed,
//   - SHA256SUMS of all files.
//
// Everything is a function of the commit and of the Go toolchain: times are the
// commit's, owners are root, and entries are sorted.
//
//	release [-C REPOSITORY] [-o DIRECTORY]
//	release [-C REPOSITORY] [-o DIRECTORY] -debian ARCHITECTURE [-binary FILE]
//	release [-C REPOSITORY] -licences
//
// With -debian it builds only one Debian package. For tests, -binary packs an earlier program without manual
// pages, and the repository may differ from its commit.
//
// With -licences it only checks the licence of each module of weft.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var architectures = []string{"amd64", "arm64"}

func main() {
	repository := flag.String("C", ".", "the repository's top directory")
	out := flag.String("o", "dist", "the directory to write; it must be absent or empty")
	debian := flag.String("debian", "", "only the Debian package of this architecture")
	binary := flag.String("binary", "", "with -debian: the program of the package")
	check := flag.Bool("licences", false, "only check the licences of the modules")
	flag.Parse()
	do := func() error { return release(*repository, *out) }
	switch {
	case *debian != "":
		do = func() error { return releaseDebian(*repository, *out, *debian, *binary) }
	case *check:
		do = func() error { return printLicences(os.Stdout, *repository) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(repository, out string) error {
	src, err := openSource(repository)
	if err != nil {
		return err
	}
	tmp, err := prepare(out)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	manual, err := src.manual(filepath.Join(tmp, "man"))
	if err != nil {
		return err
	}
	declared, err := licences(repository)
	if err != nil {
		return err
	}
	binaries := map[string]string{}
	for _, arch := range architectures {
		binary := filepath.Join(tmp, "weft-"+arch)
		if err := src.build(arch, binary); err != nil {
			return err
		}
		binaries[arch] = binary
		if err := writeArchive(src, arch, binary, out); err != nil {
			return fmt.Errorf("archive for %s: %w", arch, err)
		}
		if err := writeDebian(src, arch, binary, manual, out); err != nil {
			return fmt.Errorf("package for %s: %w", arch, err)
		}
		if err := writeSPDX(src, arch, binary, declared, out); err != nil {
			return fmt.Errorf("SPDX document for %s: %w", arch, err)
		}
	}
	if err := writeImage(src, binaries, filepath.Join(tmp, "oci"), out); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := writeProvenance(src, out); err != nil {
		return fmt.Errorf("provenance: %w", err)
	}
	return writeSums(out)
}

// releaseDebian builds the Debian package of an architecture, around a binary if there is one.
func releaseDebian(repository, out, arch, binary string) error {
	if !slices.Contains(architectures, arch) {
		return fmt.Errorf("no package is built for %q: name one of %s", arch, strings.Join(architectures, ", "))
	}
	read := openSource
	if binary != "" {
		read = readSource
	}
	src, err := read(repository)
	if err != nil {
		return err
	}
	tmp, err := prepare(out)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if binary != "" {
		return writeDebian(src, arch, binary, nil, out)
	}
	manual, err := src.manual(filepath.Join(tmp, "man"))
	if err != nil {
		return err
	}
	binary = filepath.Join(tmp, "weft-"+arch)
	if err := src.build(arch, binary); err != nil {
		return err
	}
	return writeDebian(src, arch, binary, manual, out)
}

// prepare creates the directory of the release, unless it has files, and a directory for temporary files.
func prepare(out string) (tmp string, err error) {
	if entries, err := os.ReadDir(out); err == nil && len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty: remove it, or name another directory with -o", out)
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp("", "weft-release-")
}
