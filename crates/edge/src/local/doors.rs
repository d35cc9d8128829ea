//! Where clients of the node's API come in: a port, with TLS, and a socket for root and for whoever
//! runs the agent, who is the node's keeper by that.

use std::sync::Arc;

use host::Shutdown;
use host::listen::socket::{Local, Socket};
use host::listen::{self, Listener};
use host::tasks::Crowd;
use kubeapi::serve::{Api, serve, serve_local};
use rustls::ServerConfig;

use super::Failed;
use super::identity::keeper;

/// What is listened on.
pub(super) struct Doors {
    pub(super) port: Listener,
    pub(super) socket: Option<Socket>,
}

impl Doors {
    /// Waits until somebody comes, who is let in first.
    pub(super) async fn knock(&mut self) -> Result<(), Failed> {
        let Some(socket) = &mut self.socket else {
            return Ok(self.port.knock().await?);
        };
        tokio::select! {
            knocked = self.port.knock() => Ok(knocked?),
            knocked = socket.knock() => Ok(knocked?),
        }
    }

    /// Lets everybody in until the shutdown.
    pub(super) async fn run(
        self,
        api: Arc<Api>,
        tls: Arc<ServerConfig>,
        crowd: Crowd,
        shutdown: Shutdown,
    ) -> Result<(), Failed> {
        let (by_port, by_socket) = (api.clone(), api);
        let answer = move |accepted: listen::Accepted| serve(by_port.clone(), accepted);
        let port = self.port.run(tls, crowd.clone(), shutdown.clone(), answer);
        let Some(socket) = self.socket else {
            return Ok(port.await?);
        };
        let answer = move |local: Local| serve_local(by_socket.clone(), keeper(), local);
        let socket = socket.run(crowd, shutdown, answer);
        // One that fails ends the other, and the agent with it.
        tokio::try_join!(async { Ok::<_, Failed>(port.await?) }, async {
            Ok(socket.await?)
        })?;
        Ok(())
    }
}
