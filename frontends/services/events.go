package services

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Events takes what the owner of a Service should hear of: kind is "Normal" or
// "Warning", reason one word. It must not block.
type Events interface {
	Service(name types.NamespacedName, kind, reason, message string)
}

// warnOf tells the owner of a Service, if somebody can.
func (c *Config) warnOf(name types.NamespacedName, reason, message string) {
	if c.Events == nil {
		return
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage-len("...")], "") + "..."
	}
	c.Events.Service(name, "Warning", reason, message)
}

// maxMessage is the most that the API server takes as an event's note.
const maxMessage = 1024
