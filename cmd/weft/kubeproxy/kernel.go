package kubeproxy

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/version"
)

const (
	skipKubeProxy = "KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK"
	skipWeft      = "WEFT_SKIP_KERNEL_VERSION_CHECK"
)

var least = version.MajorMinor(5, 13)

// CheckKernel returns an error for a kernel before 5.13 or an unreadable version, unless
// KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK or WEFT_SKIP_KERNEL_VERSION_CHECK is set.
func CheckKernel() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("find the kernel's version: %w", err)
	}
	return checkKernel(unix.ByteSliceToString(u.Release[:]), os.Getenv)
}

// CheckRelease returns an error for an unreadable release or a release before 5.13, such as
// "5.4.0-42-generic".
func CheckRelease(release string) error {
	return checkKernel(release, func(string) string { return "" })
}

func checkKernel(release string, getenv func(string) string) error {
	if getenv(skipKubeProxy) != "" || getenv(skipWeft) != "" {
		return nil
	}
	v, err := version.ParseGeneric(release)
	if err != nil {
		return fmt.Errorf("read the kernel's version %q: %w (%s=1 turns the check off)", release, err, skipWeft)
	}
	if v.LessThan(least) {
		return fmt.Errorf("kernel %s is too old: weft needs Linux %d.%d (%s=1 turns the check off)", release, least.Major(), least.Minor(), skipWeft)
	}
	return nil
}
