package server

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec
}

func newMetrics(reg *prometheus.Registry, m Mounts) *metrics {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "vfsd_control_requests_total",
		Help: "Requests on the control socket, by route and HTTP status.",
	}, []string{"route", "code"})
	mounts := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "vfsd_mounts",
		Help: "Live mounts.",
	}, func() float64 { return float64(len(m.Mounts())) })
	lag := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "vfsd_recording_lag_events",
		Help: "Events that mounts recorded and the index has not yet.",
	}, func() float64 { return float64(pending(m.Mounts())) })
	reg.MustRegister(requests, mounts, lag)
	return &metrics{requests: requests}
}

// request counts one answer. route is a pattern, never a path that a caller chose.
func (m *metrics) request(route string, status int) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
}

func pending(ms []Mount) int {
	n := 0
	for _, m := range ms {
		n += m.Pending
	}
	return n
}
