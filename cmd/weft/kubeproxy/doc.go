// Package kubeproxy reads kube-proxy's command line and configuration file, KubeProxyConfiguration
// (kubeproxy.config.k8s.io/v1alpha1), so that an operator can keep both.
//
// It turns flags and a file ([Options]) into [Settings] with warnings, which package daemon applies.
// Read options.go and complete.go first, then fields.go, the table of settings, their flags, and why
// some have no effect.
//
// # Which settings count
//
// As in kube-proxy 1.36, a file replaces the flags, except --hostname-override, --master and the flags
// of the log. Warnings name other given flags, modes other than nftables, and settings without effect
// that differ from their defaults. In another mode kube-proxy used iptables.masqueradeAll and
// iptables.masqueradeBit, so weft uses them unless the nftables section sets its own.
//
// The defaults are kube-proxy's, except 100 ms for nftables.minSyncPeriod: weft does not need a second
// between two updates.
//
// # The file
//
// The file is one YAML or JSON document. Unknown fields, repeated fields and wrong types are errors,
// although kube-proxy retries without checking them. All errors are reported with their lines.
//
// # Changes
//
// Follow returns ErrChanged when the file differs from the start. weft ends with exit code 0, and the
// DaemonSet restarts it; its rules stay in the kernel. weft logs errors in a changed file and
// continues.
//
// # Errors
//
// An error in a file is an *access.FileError, an error on the command line a *cli.UsageError.
package kubeproxy
