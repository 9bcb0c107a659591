// Package nftfile reads the .nft files of the command line and their included files. The daemon does
// not read .nft files.
//
// It turns paths, directories and "-" into texts ([Read], [Paths]), fragments ([Selection.Sources])
// and bundles of several files ([IncludePath.Read]), and translates the places of violations to the
// original file and line ([LocateError]). Read read.go first.
//
// The package rejects files over 64 MiB and files that are not text.
package nftfile
