/* Tells a service manager how the server is (systemd's Type=notify; dist/quarry.service). */
#ifndef S_SERVICE_H
#define S_SERVICE_H

/* address: the value of NOTIFY_SOCKET, or NULL: nobody asked. state: "READY=1". What cannot be sent is let be: the manager has its own time. */
void service_tell(const char *address, const char *state);

#endif
