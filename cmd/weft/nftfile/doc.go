// Package nftfile reads the .nft files of the command line and their included files.
//
// It turns paths, directories and "-" into texts, fragments and bundles of several files. It
// rejects files over 64 MiB and files that are not text.
package nftfile
