package debian

import "strings"

// Kernel accepts the packages with the files of a kernel, on which linux-image-cloud-amd64 and similar
// packages depend. It is for Suite.Unpack.
func Kernel(name string) bool {
	for _, prefix := range []string{"linux-image-", "linux-binary-", "linux-modules-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
