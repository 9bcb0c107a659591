package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the format "deb"
	"github.com/goreleaser/nfpm/v2/files"
)

const maintainer = "The weft authors <weft@weft-proxy.invalid>"

// writeDebian writes a package for nodes outside Kubernetes. It enables and
// starts no unit: the operator of a node chooses its units.
func writeDebian(src *source, arch, binary string, manual []string, out string) (err error) {
	stage, err := os.MkdirTemp("", "weft-debian-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	contents, err := debianFiles(src, stage, binary, manual)
	if err != nil {
		return err
	}
	scripts := filepath.Join(src.dir, ".ci/release/debian")
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "weft", Arch: arch, Platform: "linux", Version: src.debianVersion(), VersionSchema: "none",
		Section: "net", Priority: "optional", Maintainer: maintainer, Homepage: repositoryURL, MTime: src.time,
		Description: "Kubernetes Services and third-party rules in one nftables ruleset\n" +
			"A node agent that owns nftables: frontends publish fragments of a ruleset\n" +
			"over a Unix socket, and one aggregator merges and commits them atomically.",
		Overridables: nfpm.Overridables{
			Contents:   contents,
			Recommends: []string{"nftables"},
			Suggests:   []string{"conntrack"},
			Umask:      0o022,
			Scripts: nfpm.Scripts{
				PostInstall: filepath.Join(scripts, "postinst"),
				PreRemove:   filepath.Join(scripts, "prerm"),
				PostRemove:  filepath.Join(scripts, "postrm"),
			},
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}
	packager, err := nfpm.Get("deb")
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(out, fmt.Sprintf("weft_%s_%s.deb", src.debianVersion(), arch)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return packager.Package(info, f)
}

// debianFiles lists the package's files, and writes to stage the files that differ from the repository's.
func debianFiles(src *source, stage, binary string, manual []string) (files.Contents, error) {
	var contents files.Contents
	var failed error
	add := func(path, kind, to string, mode os.FileMode) {
		contents = append(contents, &files.Content{Source: path, Destination: to, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: src.time}})
	}
	write := func(data []byte, to string) {
		path := filepath.Join(stage, filepath.Base(to))
		failed = errors.Join(failed, os.WriteFile(path, data, 0o644))
		add(path, files.TypeFile, to, 0o644)
	}
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		failed = errors.Join(failed, err)
		return data
	}
	add(binary, files.TypeFile, "/usr/bin/weft", 0o755)
	add(filepath.Join(src.dir, ".ci/release/debian/default"), files.TypeConfig, "/etc/default/weft", 0o644)
	add("", files.TypeDir, "/etc/weft", 0o755)
	units, err := filepath.Glob(filepath.Join(src.dir, "deploy/systemd/*.service"))
	if err != nil {
		return nil, err
	}
	if len(units) == 0 {
		return nil, fmt.Errorf("%s/deploy/systemd has no units", src.dir)
	}
	for _, unit := range units {
		// A package's programs are in /usr/bin.
		write(bytes.ReplaceAll(read(unit), []byte("/usr/local/bin/weft"), []byte("/usr/bin/weft")), "/lib/systemd/system/"+filepath.Base(unit))
	}
	add(filepath.Join(src.dir, "deploy/systemd/modules-load.d/weft.conf"), files.TypeFile, "/usr/lib/modules-load.d/weft.conf", 0o644)
	add(filepath.Join(src.dir, "deploy/systemd/sysusers.d/weft.conf"), files.TypeFile, "/usr/lib/sysusers.d/weft.conf", 0o644)
	add(filepath.Join(src.dir, "deploy/systemd/publishers.yaml"), files.TypeFile, "/usr/share/weft/publishers.yaml", 0o644)
	for _, page := range manual {
		write(compress(read(page)), "/usr/share/man/man1/"+filepath.Base(page)+".gz")
	}
	changelog := fmt.Sprintf("weft (%s) unstable; urgency=medium\n\n  * Built from commit %s.\n\n -- %s  %s\n",
		src.debianVersion(), src.commit, maintainer, src.time.Format(time.RFC1123Z))
	write(compress([]byte(changelog)), "/usr/share/doc/weft/changelog.gz")
	add(filepath.Join(src.dir, ".ci/release/debian/copyright"), files.TypeFile, "/usr/share/doc/weft/copyright", 0o644)
	return contents, failed
}

// compress is gzip -9n. Writes to memory do not fail.
func compress(data []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
	_, _ = z.Write(data)
	_ = z.Close()
	return out.Bytes()
}
