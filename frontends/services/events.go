package services

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Events reports events about Services: kind is "Normal" or "Warning", reason is one
// word.
type Events interface {
	// Service must not block.
	Service(name types.NamespacedName, kind, reason, message string)
}

// warnService reports a warning about a Service, if there is a receiver.
func (c *Config) warnService(name types.NamespacedName, reason, message string) {
	if c.Events == nil {
		return
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("...")], "") + "..."
	}
	c.Events.Service(name, "Warning", reason, message)
}

// maxMessage is the API server's limit for the note of an event, in bytes.
const maxMessage = 1024
