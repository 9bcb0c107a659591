// Package nftfile reads the .nft files of the command line and their included files.
//
// It turns paths, directories and "-" into texts ([Read], [Paths]), fragments ([Selection.Sources])
// and bundles of several files ([IncludePath.Read]). [LocateError] translates places of violations.
// The package rejects files over 64 MiB and files that are not text.
package nftfile
