// Package kubeproxy reads kube-proxy's command line and its configuration file,
// KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), so that an operator who
// replaces kube-proxy can keep both.
//
// It turns flags and a file ([Options]) into [Settings] with warnings. Read options.go and
// complete.go first, then fields.go: its table has every setting, the flags that set it,
// and for a setting without effect the reason.
//
// The package starts nothing and sets nothing: package daemon applies the settings.
//
// # Which settings count
//
// As in kube-proxy 1.36, a file replaces the flags. Beside a file only
// --hostname-override, --master and the flags of the log have an effect, and a warning
// names the others that were given. A warning also names each setting that has no
// effect and differs from its default, and modes other than nftables. In such a mode
// kube-proxy used iptables.masqueradeAll and iptables.masqueradeBit, so weft uses them
// unless the nftables section sets its own.
//
// The defaults are kube-proxy's, except that nftables.minSyncPeriod is 100 ms: weft
// does not need a second between two updates.
//
// # The file
//
// The file is one YAML or JSON document. Unknown fields, repeated fields and wrong types
// are errors, although kube-proxy retries without checking them. All errors are
// reported at once, with their lines.
//
// # Changes
//
// Follow returns ErrChanged when the file no longer says what it said at the start.
// weft then ends with exit code 0, and the DaemonSet starts it again; its rules stay
// in the kernel. A changed file with an error is logged, and weft continues.
//
// # Errors
//
// An error in a file is an *access.FileError, an error on the command line a
// *cli.UsageError.
package kubeproxy
