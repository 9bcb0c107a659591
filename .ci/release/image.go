package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeImage writes the image of deploy/image/Dockerfile for all architectures.
// It has no base: the binary is static and needs no other file.
func writeImage(src *source, binaries map[string]string, dir, out string) (err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures {
		img, err := image(src, arch, binaries[arch])
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": src.version})
	if err := path.AppendIndex(index, name); err != nil {
		return err
	}
	entries, err := filesBelow(dir)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(out, "weft-"+src.version+"-oci.tar"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return writeTar(f, src.time, entries)
}

func image(src *source, arch, binary string) (v1.Image, error) {
	var files bytes.Buffer
	if err := writeTar(&files, src.time, []entry{{"weft", binary, 0o755}}); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: src.time}
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "COPY /weft /weft"}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, created
	config.Config = v1.Config{
		Entrypoint: []string{"/weft"},
		Cmd:        []string{"run"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "weft",
			"org.opencontainers.image.source":   repositoryURL,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  src.version,
			"org.opencontainers.image.revision": src.commit,
		},
	}
	return mutate.ConfigFile(img, config)
}
