package model

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// MaxSandboxes limits the sandboxes of this node.
	MaxSandboxes = 16384
	// maxSandboxID limits the lengths of the ID and the pod's UID.
	maxSandboxID = 256
	// maxSandboxLabel limits the length of a key or value.
	maxSandboxLabels = 1024
	maxSandboxLabel  = 512
)

// The API object lacks these labels of the kubelet.
const kubeletLabels = "io.kubernetes.pod."

// Sandbox is a pod of this node as the container runtime knows it.
type Sandbox struct {
	// ID is the runtime's name; a recreated sandbox gets another ID.
	ID     string
	UID    types.UID
	Name   types.NamespacedName
	Labels map[string]string
	// Addresses are empty in the host's network.
	Addresses []string
}

// SandboxObject is the immutable, parsed form of a Sandbox.
type SandboxObject struct {
	id  string
	pod PodObject
}

// ParseSandbox ignores invalid addresses; other invalid parts are an error.
func ParseSandbox(s *Sandbox) (*SandboxObject, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("parse sandbox %.64q of pod %.64q: %w", s.ID, s.Name, err)
	}
	labels := make(map[string]string, len(s.Labels))
	for k, v := range s.Labels {
		if !strings.HasPrefix(k, kubeletLabels) {
			labels[k] = v
		}
	}
	out := &SandboxObject{id: strings.Clone(s.ID), pod: PodObject{podFacts: podFacts{
		name: types.NamespacedName{Namespace: intern(s.Name.Namespace), Name: strings.Clone(s.Name.Name)},
		uid:  types.UID(strings.Clone(string(s.UID))),
		// The age is unknown, so other pods own a shared address.
		created: math.MaxInt64,
	}, labels: parseLabels(labels)}}
	out.pod.setAddresses("ips", s.Addresses)
	return out, nil
}

func (s *Sandbox) validate() error {
	var errs []error
	if s.ID == "" || len(s.ID) > maxSandboxID {
		errs = append(errs, fmt.Errorf("the ID has %d bytes, not 1 to %d", len(s.ID), maxSandboxID))
	}
	if s.UID == "" || len(s.UID) > maxSandboxID || strings.Contains(string(s.UID), "/") {
		errs = append(errs, fmt.Errorf("the UID is not one of 1 to %d bytes without a slash", maxSandboxID))
	}
	if len(validation.IsDNS1123Label(s.Name.Namespace)) > 0 || len(validation.IsDNS1123Subdomain(s.Name.Name)) > 0 {
		errs = append(errs, errors.New("the name is not that of a pod"))
	}
	if len(s.Labels) > maxSandboxLabels {
		errs = append(errs, fmt.Errorf("it has %d labels, more than %d", len(s.Labels), maxSandboxLabels))
	}
	for k, v := range s.Labels {
		if len(k) > maxSandboxLabel || len(v) > maxSandboxLabel {
			errs = append(errs, fmt.Errorf("the key or value of label %.64q is longer than %d bytes", k, maxSandboxLabel))
			break
		}
	}
	return errors.Join(errs...)
}
